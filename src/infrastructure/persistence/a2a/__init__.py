"""A2A in SQL."""
