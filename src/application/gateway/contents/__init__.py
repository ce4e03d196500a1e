"""Resources, prompts and completion of the MCP servers of a gateway session."""
