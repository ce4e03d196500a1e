"""Where a person comes back to from an authorization server, over HTTP."""
