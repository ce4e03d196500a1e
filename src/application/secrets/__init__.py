"""Use cases of the secrets slice."""
