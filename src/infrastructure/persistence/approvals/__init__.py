"""SQL adapters of the ports of the approvals slice."""
