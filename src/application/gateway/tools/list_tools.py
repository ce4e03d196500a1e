"""ListGatewayTools: the tools that a session's client sees."""

from application.gateway.tools.gateway_toolset import GatewayToolsets
from domain.gateway.session import GatewaySession, ToolSearch
from domain.tools.tool import Tool


class ListGatewayTools:
    """All tools that the session may call under the client's names, in a fixed order: native tools,
    then those of MCP servers by name, or the meta tools that replace them. Denied and hidden tools
    are left out. Tools that only apps may call are shown to clients that render apps."""

    def __init__(self, *, toolsets: GatewayToolsets) -> None:
        self._toolsets = toolsets

    async def execute(
        self, session: GatewaySession, tool_search: ToolSearch = ToolSearch.AUTO, *, renders_apps: bool = False
    ) -> tuple[tuple[str, Tool], ...]:
        """The same object while nothing changes. Raises FORBIDDEN `agent_disabled`,
        `agent_not_found`."""
        tools = await self._toolsets.of(session)
        return (tools.with_apps if renders_apps else tools).listed(tool_search)
