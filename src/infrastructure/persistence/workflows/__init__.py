"""SQL adapters of the ports of the workflows slice."""
