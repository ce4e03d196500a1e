"""Use cases of the threads slice."""
