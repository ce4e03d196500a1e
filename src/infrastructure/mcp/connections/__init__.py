"""Live connections to MCP servers: opened, pooled, spoken over, and closed by the task that opened them."""
