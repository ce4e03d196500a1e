"""ContentSources: the servers whose resources and prompts a session may use, and their listings."""

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import cast

from application.gateway.contents.content_names import ContentKind, exposed, policy_name, resolved_uri
from application.gateway.tools.gateway_toolset import GatewayToolset, GatewayToolsets, scope_of
from application.mcp.contents import ContentMethod, ContentRequest, McpContents
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import McpFailure, McpServerStore
from domain.gateway.session import GatewaySession, ToolNames
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from domain.policy.decision import decide_tool
from domain.teams import sees

logger = logging.getLogger(__name__)

LIST_TIMEOUT_S = 10.0
"""Time limit of one server's whole listing; a slower server has no entries in this listing."""
MAX_ENTRIES = 1_000
"""Limit per kind and server; further entries are left out."""

_CUT = re.compile(r"_[0-9a-f]{8}$")
_LISTED_BY = {
    ContentKind.RESOURCES: ContentMethod.RESOURCES,
    ContentKind.TEMPLATES: ContentMethod.TEMPLATES,
    ContentKind.PROMPTS: ContentMethod.PROMPTS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The toolset of a session, and the servers that may be asked for one kind of content."""

    session: GatewaySession
    tools: GatewayToolset
    servers: tuple[McpServer, ...]


class ContentSources:
    """Rules:
    - The servers are those of the agent, without those of another team, and those that policy or an
      allowlist denies for the kind.
    - A server that is disabled, not installed or does not answer has no contents. It does not
      affect other servers.
    """

    def __init__(
        self, *, toolsets: GatewayToolsets, servers: McpServerStore, contents: McpContents, switch: McpSwitch
    ) -> None:
        self._toolsets = toolsets
        self._servers = servers
        self._contents = contents
        self._switch = switch

    async def of(self, session: GatewaySession, kind: ContentKind) -> Sources:
        """The servers, ordered by slug. Raises FORBIDDEN `agent_disabled`, `agent_not_found`."""
        tools = await self._toolsets.of(session)
        found: list[McpServer] = []
        kinds = await self._switch.permitted(session.organization_id)
        if kinds is not None:
            for slug in sorted(set(tools.agent.config.mcp_servers)):
                name = policy_name(slug, kind)
                server = await self._servers.get(session.organization_id, slug)
                if server is None or not server.config.enabled or server.lacks_installation:
                    continue
                if not sees(tools.agent.config.usable_teams, server.team):
                    continue
                if not kinds.permit(server.config):
                    continue
                if decide_tool(tools.toolset.policy_of(name), name) is None:
                    found.append(server)
        return Sources(session=session, tools=tools, servers=tuple(found))

    async def listed(self, sources: Sources, kind: ContentKind) -> tuple[JsonObject, ...]:
        """All entries of a kind by server, under the client's names. Repeated names are left
        out."""
        names = sources.session.names
        lists = await asyncio.gather(*(self._list(sources.session, server, kind) for server in sources.servers))
        entries: dict[str, JsonObject] = {}
        for server, listed in zip(sources.servers, lists, strict=True):
            for entry in listed:
                shown = exposed(entry, server.config.slug, kind, names)
                if shown is not None:
                    entries.setdefault(str(shown.get("uri") or shown.get("uriTemplate") or shown["name"]), shown)
        return tuple(entries.values())

    async def owner_of_uri(self, sources: Sources, uri: str) -> tuple[McpServer, str] | None:
        """The server of the resource, with the server's own URI. Apps use their server's own URI of
        an app, which must be one that tools of exactly one server link to. It may begin with the
        slug of another server. If it names an app of that server as well, neither is read."""
        named: tuple[McpServer, str] | None = None
        for server in sources.servers:
            if sources.session.names is ToolNames.ORIGINAL:
                return server, uri
            if (own := resolved_uri(uri, server.config.slug)) is not None:
                named = server, own
        links = sources.tools.app_links
        slugs = links.get(uri, frozenset())
        if not slugs:
            return named
        if named is not None and named[0].config.slug in links.get(named[1], frozenset()):
            return None
        owners = [server for server in sources.servers if server.config.slug in slugs]
        return (owners[0], uri) if len(slugs) == len(owners) == 1 else None

    async def owner_of_prompt(self, sources: Sources, name: str) -> tuple[McpServer, str] | None:
        """The server of the prompt, with the server's own name. A shortened name is looked up in
        the server's listing."""
        for server in sources.servers:
            if sources.session.names is ToolNames.ORIGINAL:
                return server, name
            slug = server.config.slug
            if not name.startswith(f"mcp__{slug}__"):
                continue
            plain: JsonObject = {"name": name.removeprefix(f"mcp__{slug}__")}
            # A name with such an ending may be shortened or replaced.
            listed = await self._list(sources.session, server, ContentKind.PROMPTS) if _CUT.search(name) else []
            for entry in (*listed, plain):
                shown = exposed(entry, slug, ContentKind.PROMPTS, sources.session.names)
                if shown is not None and shown["name"] == name:
                    return server, str(entry["name"])
        return None

    async def _list(self, session: GatewaySession, server: McpServer, kind: ContentKind) -> list[JsonObject]:
        entries: list[JsonObject] = []
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                cursor: object = None
                cursors: set[object] = set()
                while len(entries) < MAX_ENTRIES:
                    params: JsonObject = {} if cursor is None else {"cursor": str(cursor)}
                    request = ContentRequest(method=_LISTED_BY[kind], params=params, timeout_s=LIST_TIMEOUT_S)
                    page = await self._contents.ask(server, scope_of(session), request)
                    listed = page.get(kind.value)
                    entries += (
                        [cast(JsonObject, one) for one in listed if isinstance(one, dict)]
                        if isinstance(listed, list)
                        else []
                    )
                    cursor = page.get("nextCursor")
                    if not cursor or cursor in cursors or not listed:
                        break
                    cursors.add(cursor)
        except (McpFailure, TimeoutError) as failure:
            detail = failure.kind.value if isinstance(failure, McpFailure) else "timeout"
            ids = {"server_id": server.id, "server": server.config.slug, "gateway_session_id": session.id}
            logger.info("cannot list the contents of a server", extra={**ids, "kind": kind.value, "failure": detail})
        return entries[:MAX_ENTRIES]
