"""SQL adapters of the ports of the secrets slice."""
