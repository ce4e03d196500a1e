"""The audit trail over HTTP."""
