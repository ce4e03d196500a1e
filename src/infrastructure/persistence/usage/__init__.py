"""SQL adapters of the ports of the usage slice."""
