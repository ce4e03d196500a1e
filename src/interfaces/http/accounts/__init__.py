"""The caller's own accounts at MCP servers."""
