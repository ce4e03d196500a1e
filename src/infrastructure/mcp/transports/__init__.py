"""Transports to MCP servers: started processes, streamable HTTP, HTTP with SSE."""
