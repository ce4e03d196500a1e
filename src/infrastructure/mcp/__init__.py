"""MCP servers as seen from Dragoman: how they are started, connected to and spoken with."""
