"""What generates the clients."""
