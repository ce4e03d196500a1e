"""Catalogs of MCP servers, and their changes."""
