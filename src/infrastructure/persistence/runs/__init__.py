"""SQL adapters of the ports of the runs slice."""
