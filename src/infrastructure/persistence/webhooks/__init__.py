"""SQL adapters of the ports of the webhooks slice."""
