"""SQL adapters of the ports of the threads slice."""
