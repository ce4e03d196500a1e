"""Live connections to MCP servers: opened, pooled, used and closed."""
