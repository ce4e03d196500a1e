"""Use cases of the model providers slice."""
