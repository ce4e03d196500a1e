"""Use cases of the runs slice."""
