"""The queue of runs."""
