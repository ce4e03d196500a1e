"""Installation of MCP servers on this machine: npm and Python packages, and copies of custom
servers."""
