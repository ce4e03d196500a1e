"""Use cases of A2A beyond runs."""
