"""SQL adapters of the ports of the gateway slice."""
