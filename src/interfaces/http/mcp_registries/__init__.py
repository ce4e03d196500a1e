"""The configured MCP registries over HTTP."""
