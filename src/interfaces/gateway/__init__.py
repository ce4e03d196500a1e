"""The gateway at `/mcp`: MCP over streamable HTTP, in every released version with that transport,
on one URL."""
