"""Use cases of the mcp slice."""
