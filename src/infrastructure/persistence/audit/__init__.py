"""SQL adapters of the ports of the audit slice."""
