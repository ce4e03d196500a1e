"""Use cases of the tools slice."""
