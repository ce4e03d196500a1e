"""Use cases of the agents slice."""
