"""Usage over HTTP."""
