"""ListServerContents: the resources and prompts of one server for a person, under the policy of an
agent."""

from dataclasses import dataclass, replace

from application.gateway.contents.content_names import ContentKind
from application.gateway.contents.content_sources import ContentSources
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.ports import McpServerStore
from application.mcp.server_lookup import existing_server
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import ToolNames
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContents:
    """What a server lists, under its own names. The entries are objects of the protocol."""

    resources: tuple[JsonObject, ...]
    templates: tuple[JsonObject, ...]
    prompts: tuple[JsonObject, ...]


class ListServerContents:
    """Rules:
    - Requires `runner`. The server is asked in the caller's own gateway session with the agent.
    - A kind of content that the agent's policy denies is empty. An entry that holds a canary token
      is left out.

    Raises: FORBIDDEN `content_denied` if the agent offers nothing of the server, NOT_FOUND, and
    what opening the session raises.
    """

    def __init__(self, *, access: GatewayAccess, servers: McpServerStore, sources: ContentSources) -> None:
        self._access = access
        self._servers = servers
        self._sources = sources

    async def execute(self, principal: Principal, server: str, agent: str) -> ServerContents:
        """`server` is an id or a slug, `agent` an id or a name."""
        principal.require(Permission.RUNS_START)
        found = await existing_server(self._servers, principal, server)
        session = await self._access.of_principal(principal, agent)
        listed: dict[ContentKind, tuple[JsonObject, ...]] = {}
        for kind in ContentKind:
            sources = await self._sources.of(session, kind)
            own = tuple(each for each in sources.servers if each.id == found.id)
            if own:
                # Under the names of the server: there is only one.
                alone = replace(sources, servers=own, session=replace(session, names=ToolNames.ORIGINAL))
                entries = await self._sources.listed(alone, kind)
                listed[kind] = tuple(each for each in entries if sources.tools.guard.arguments(each) is None)
        if not listed:
            raise ServiceError("content_denied", ErrorKind.FORBIDDEN, _NOTHING)
        return ServerContents(
            resources=listed.get(ContentKind.RESOURCES, ()),
            templates=listed.get(ContentKind.TEMPLATES, ()),
            prompts=listed.get(ContentKind.PROMPTS, ()),
        )


_NOTHING = (
    "The agent offers no resources and prompts of this server: it does not list the server, its policy denies them, or the"
    " server is disabled or not installed."
)
