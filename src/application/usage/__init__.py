"""What was used, and what may still be spent today."""
