"""SQL adapters of the ports of the mcp slice."""
