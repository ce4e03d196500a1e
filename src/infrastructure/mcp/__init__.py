"""MCP client: starting, connecting to and calling MCP servers."""
