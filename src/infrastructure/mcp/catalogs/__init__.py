"""What MCP servers offer, and how changes of it become known."""
