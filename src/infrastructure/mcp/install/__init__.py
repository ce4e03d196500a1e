"""Installing MCP servers on this machine: packages of npm and Python, and copies of custom servers."""
