"""`unregister` follows the organization's shared connection, so it is refused for servers without
one."""

from domain.errors import Violation, invalid
from domain.mcp.behavior import ConnectionLoss
from domain.mcp.server import Isolation, McpServerConfig

_NOT_SHARED = (
    "unregister needs isolation shared: connections of runs and threads are opened again by their next call, so their "
    "loss says nothing about the server"
)


def require_loss_strategy(config: McpServerConfig, stored: McpServerConfig | None = None) -> None:
    """Reject a strategy without effect, unless it is `stored` so. Raises INVALID
    `mcp_server_invalid`."""
    if config.on_connection_loss is not ConnectionLoss.UNREGISTER or config.isolation is Isolation.SHARED:
        return
    if stored is None or _pair(stored) != _pair(config):
        violation = Violation(path="on_connection_loss", message=_NOT_SHARED)
        raise invalid("mcp_server_invalid", "The MCP server is not valid.", violation)


def _pair(config: McpServerConfig) -> tuple[ConnectionLoss, Isolation]:
    return config.on_connection_loss, config.isolation
