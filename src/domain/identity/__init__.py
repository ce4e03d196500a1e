"""Organizations, keys and roles."""
