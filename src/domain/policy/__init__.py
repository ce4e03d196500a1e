"""Policy: what an agent may call."""
