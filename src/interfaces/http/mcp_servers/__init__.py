"""MCP servers over HTTP."""
