"""ListGatewayTools: what a session's client is shown."""

from dataclasses import dataclass

from application.gateway.tools.toolbox import GatewayToolbox
from domain.gateway.session import GatewaySession
from domain.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGatewayToolsCommand:
    """Whose."""

    session: GatewaySession


class ListGatewayTools:
    """All tools that the session may call, with the names its client calls them by, always in the same order: native ones, then
    those of MCP servers by name. What policy denies, or an allowlist hides, is not there."""

    def __init__(self, *, toolbox: GatewayToolbox) -> None:
        self._toolbox = toolbox

    async def execute(self, command: ListGatewayToolsCommand) -> tuple[tuple[str, Tool], ...]:
        """The same object, as long as nothing changes. Raises FORBIDDEN `agent_disabled`, `agent_not_found`."""
        return (await self._toolbox.of(command.session)).tools
