"""Use cases of the audit slice."""
