"""Users over HTTP."""
