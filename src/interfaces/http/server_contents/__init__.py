"""Resources and prompts of MCP servers over HTTP."""
