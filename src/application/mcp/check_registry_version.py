"""CheckRegistryVersion: whether the registry that a server was added from has a newer version of
its entry."""

from dataclasses import dataclass

from application.mcp.ports import McpServerStore
from application.mcp.registries import GetRegistryEntry
from application.mcp.server_lookup import existing_server
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.entry_origin import EntryOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryVersion:
    """`origin` is None for a server from no registry. `newer` is the latest version, if it is
    another one."""

    origin: EntryOrigin | None
    newer: str | None = None


class CheckRegistryVersion:
    """Rules:
    - Admins check, because it may be a request to the registry.
    - The latest version is what the registry calls so; any other version than the server's is
      newer.

    Raises: FORBIDDEN, NOT_FOUND, UNAVAILABLE `mcp_registry_unavailable`.
    """

    def __init__(self, *, servers: McpServerStore, entries: GetRegistryEntry) -> None:
        self._servers = servers
        self._entries = entries

    async def execute(self, principal: Principal, server: str) -> RegistryVersion:
        principal.require(Permission.SERVERS_MANAGE)
        found = await existing_server(self._servers, principal, server)
        origin = EntryOrigin.read(found.config.registry_entry or "")
        if origin is None:
            return RegistryVersion(origin=None)
        latest = (await self._entries.execute(principal, origin.registry, origin.name)).version
        return RegistryVersion(origin=origin, newer=None if latest == origin.version else latest)
