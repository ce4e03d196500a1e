"""States of the lists that a session sees: equal while the list has the same entries."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from application.gateway.contents.content_names import ContentKind
from application.gateway.contents.content_sources import ContentSources
from application.gateway.tools.gateway_toolset import GatewayToolset, GatewayToolsets
from application.mcp.news import ListKind
from application.system.lru import LruCache
from application.tools.toolset import Toolset
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import GatewaySession, ToolNames
from domain.ids import McpServerId
from domain.tools.tool import Tool

_DIGESTS = 256
_OF_CONTENTS = {ListKind.RESOURCES: ContentKind.RESOURCES, ListKind.PROMPTS: ContentKind.PROMPTS}


@dataclass(frozen=True, slots=True)
class ListState:
    """`entries` compare equal for equal lists, and are None while the agent is deleted or disabled.
    `servers` offer the entries; empty for tools."""

    entries: object
    servers: frozenset[McpServerId] = frozenset()


class ListStates:
    """Reads the states of lists. The digest of a toolset is computed once for all sessions that
    have it."""

    def __init__(self, *, toolsets: GatewayToolsets, sources: ContentSources) -> None:
        self._toolsets = toolsets
        self._sources = sources
        self._digests = _ToolDigests()

    async def of(self, session: GatewaySession, kinds: Iterable[ListKind]) -> Mapping[ListKind, ListState]:
        return {kind: await self._state(session, kind) for kind in sorted(kinds)}

    async def _state(self, session: GatewaySession, kind: ListKind) -> ListState:
        try:
            if kind is ListKind.TOOLS:
                return ListState(self._digests.of(await self._toolsets.of(session)))
            servers = (await self._sources.of(session, _OF_CONTENTS[kind])).servers
        except ServiceError as error:
            if error.kind is not ErrorKind.FORBIDDEN:
                raise
            return ListState(None)
        entries = tuple((server.id, server.version) for server in servers)
        return ListState(entries, frozenset(server.id for server in servers))


@dataclass(slots=True)
class _ToolDigests:
    _kept: LruCache[tuple[int, ToolNames], tuple[Toolset, bytes]] = field(default_factory=lambda: LruCache(_DIGESTS))

    def of(self, tools: GatewayToolset) -> bytes:
        """Equal for equal lists of tools."""
        key = (id(tools.toolset), tools.names)
        kept = self._kept.get(key)
        if kept is None or kept[0] is not tools.toolset:
            kept = (tools.toolset, _digest(tools))
            self._kept.put(key, kept)
        return kept[1]


def _digest(tools: GatewayToolset) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, tool in tools.with_apps.tools:
        digest.update(f"{name}\x1f{_shape(tool)}\x1e".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _shape(tool: Tool) -> str:
    definition = None if tool.mcp is None else tool.mcp.definition
    if definition is not None:
        return definition.digest
    return f"{tool.description}\x1f{json.dumps(tool.parameters, sort_keys=True)}"
