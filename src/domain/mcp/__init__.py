"""MCP servers and what they offer."""
