"""Figures about the service as a whole, for those who operate it."""
