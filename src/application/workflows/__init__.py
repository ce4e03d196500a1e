"""Use cases of the workflows slice."""
