"""The caller's organization over HTTP."""
