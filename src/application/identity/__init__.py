"""Use cases of the identity slice."""
