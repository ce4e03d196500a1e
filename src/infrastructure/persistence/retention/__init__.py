"""SQL adapters of the ports of the retention slice."""
