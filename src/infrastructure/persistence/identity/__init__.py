"""SQL adapters of the ports of the identity slice."""
