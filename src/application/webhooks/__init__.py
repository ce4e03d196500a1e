"""Use cases of the webhooks slice."""
