"""Rejects servers at addresses that the outbound policy forbids, before storage."""

from application.system.ports import OutboundPolicy
from domain.errors import Violation, invalid
from domain.mcp.server import McpServerConfig


def require_reachable(outbound: OutboundPolicy, config: McpServerConfig) -> None:
    """Raises INVALID `mcp_server_invalid` for a URL that the policy rejects."""
    refusal = None if config.url is None else outbound.refusal(config.url)
    if refusal is not None:
        raise invalid("mcp_server_invalid", "The MCP server is not valid.", Violation(path="url", message=refusal))
