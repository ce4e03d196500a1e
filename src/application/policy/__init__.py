"""Use cases of the policy slice."""
