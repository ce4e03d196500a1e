"""Names of tools at their servers (MCP 2025-11-25, server/tools)."""

import re

_LEGAL = re.compile(r"[A-Za-z0-9_.\-]{1,128}")


def is_legal_mcp_name(name: str) -> bool:
    """Whether the server's tool name is valid."""
    return _LEGAL.fullmatch(name) is not None
