"""Use cases of the approvals slice."""
