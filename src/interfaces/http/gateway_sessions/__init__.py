"""Gateway sessions over HTTP."""
