"""The gateway at `/mcp`: MCP over streamable HTTP, every released version that has it, on one URL."""
