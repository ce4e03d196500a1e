"""The wire to an MCP server: started processes, streamable HTTP, HTTP with SSE."""
