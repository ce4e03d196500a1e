"""CheckSubscription: decides which resources a client may watch, and finds their server."""

from dataclasses import dataclass, replace

from application.gateway.contents.content_names import ContentKind, policy_name
from application.gateway.contents.content_sources import ContentSources, Sources
from application.tools.check_tool_call import CheckToolCall
from domain.errors import ErrorKind, ServiceError, not_found
from domain.gateway.session import GatewaySession
from domain.mcp.server import McpServer
from domain.policy.rules import Verdict
from domain.tools.capabilities import ToolType
from domain.tools.tool import McpBinding, Tool

MAX_URI = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchable:
    """A resource that may be watched: its server, and the server's URI."""

    server: McpServer
    uri: str


class CheckSubscription:
    """Rules:
    - A resource that may not be read, or only after an approval, may not be watched.
    - A name that holds a canary token is unknown and reaches no server.
    - Subscriptions are not in the ledger: they reveal only that something changed.
    """

    def __init__(self, *, sources: ContentSources, check: CheckToolCall) -> None:
        self._sources = sources
        self._check = check

    async def execute(self, session: GatewaySession, uri: str) -> Watchable:
        """The resource with the client's name. Raises NOT_FOUND `resource_not_found`, FORBIDDEN
        `content_denied`, `agent_disabled`, `agent_not_found`."""
        return await self.among(await self._sources.of(session, ContentKind.RESOURCES), uri)

    async def among(self, sources: Sources, uri: str) -> Watchable:
        """The same, for known servers of the session."""
        owner = await self._sources.owner_of_uri(sources, uri) if len(uri) <= MAX_URI else None
        if owner is None or sources.tools.guard.arguments({"uri": uri}) is not None:
            raise not_found("resource", uri[:MAX_URI])
        server, own = owner
        name = policy_name(server.config.slug, ContentKind.RESOURCES)
        tool = Tool(
            name=name,
            type=ToolType.MCP_TOOL,
            description="",
            parameters={"type": "object"},
            mcp=McpBinding(server_id=server.id, server_slug=server.config.slug, tool_name=name),
        )
        toolset = replace(sources.tools.toolset, tools=(tool,), denied=())
        checked = self._check.recheck(name, {"uri": own}, toolset)
        asks = checked.decision is not None and checked.decision.verdict is Verdict.REQUIRE_APPROVAL
        if checked.answer is not None or asks:
            detail = "This needs an approval." if checked.answer is None else checked.answer.text
            raise ServiceError("content_denied", ErrorKind.FORBIDDEN, detail)
        return Watchable(server=server, uri=own)
