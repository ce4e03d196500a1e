"""Wrappers around MCP connections, one concern each: limits, breakers, supervision."""
