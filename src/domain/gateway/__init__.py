"""Sessions, calls, tasks and clients of the MCP gateway."""
