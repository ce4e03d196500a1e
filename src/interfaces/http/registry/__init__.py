"""The MCP servers of an organization as an MCP registry, for the policies of IDEs."""
