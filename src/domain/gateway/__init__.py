"""What other agents reach through the gateway: sessions and their calls."""
