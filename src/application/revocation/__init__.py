"""Revocation of API keys, with all that they started."""
