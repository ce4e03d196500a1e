"""OAuth 2.1 to remote MCP servers (MCP 2026-07-28 and 2025-11-25, basic/authorization)."""
