"""What models were used for, by day."""
