"""SQL adapters of the ports of the agents slice."""
