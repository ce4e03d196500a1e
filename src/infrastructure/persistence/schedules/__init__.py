"""SQL adapters of the ports of the schedules slice."""
