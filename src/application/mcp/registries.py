"""Reads the MCP registries that the operator has configured: their names, searches, and versions of
an entry."""

from dataclasses import dataclass
from typing import Protocol

from application.mcp.registry_documents import NAME, read_entry_document
from domain.errors import ErrorKind, ServiceError, existing, not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from domain.mcp.registry_entry import RegistryEntry

LATEST = "latest"
DELETED = "deleted"
REGISTRY_UNAVAILABLE = "mcp_registry_unavailable"


class McpRegistries(Protocol):
    """Reads of registries of the API v0.1, bounded in size and time. Answers may be some minutes
    old."""

    @property
    def names(self) -> tuple[str, ...]:
        """The configured registries, in the operator's order."""
        ...

    async def search(self, registry: str, search: str, *, limit: int, cursor: str | None) -> JsonObject:
        """A page of the latest versions, as the registry answers it. Raises UNAVAILABLE
        `mcp_registry_unavailable`."""
        ...

    async def version(self, registry: str, name: str, version: str) -> JsonObject | None:
        """The document of a version, or of `latest`. None for one that the registry lacks. Raises
        as `search`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntries:
    """A page of a search; `next_cursor` is the registry's."""

    entries: tuple[RegistryEntry, ...]
    next_cursor: str | None


class ListMcpRegistries:
    """The names of the configured registries, for admins. Raises: FORBIDDEN."""

    def __init__(self, *, registries: McpRegistries) -> None:
        self._registries = registries

    async def execute(self, principal: Principal) -> tuple[str, ...]:
        principal.require(Permission.SERVERS_MANAGE)
        return self._registries.names


class SearchMcpRegistry:
    """Rules:
    - Admins search, because each search is a request to the registry.
    - Entries that are deleted or that cannot be read are left out.

    Raises: FORBIDDEN, NOT_FOUND `mcp_registry_not_found`, UNAVAILABLE `mcp_registry_unavailable`.
    """

    def __init__(self, *, registries: McpRegistries) -> None:
        self._registries = registries

    async def execute(
        self, principal: Principal, registry: str, search: str, *, limit: int, cursor: str | None = None
    ) -> FoundEntries:
        principal.require(Permission.SERVERS_MANAGE)
        require_registry(self._registries, registry)
        page = await self._registries.search(registry, search, limit=limit, cursor=cursor)
        documents, metadata = page.get("servers"), page.get("metadata")
        if not isinstance(documents, list):
            raise ServiceError(
                REGISTRY_UNAVAILABLE, ErrorKind.UNAVAILABLE, "The answer is not that of an MCP registry."
            )
        found = (read_entry_document(document) for document in documents[:limit])
        following = metadata.get("nextCursor") if isinstance(metadata, dict) else None
        return FoundEntries(
            entries=tuple(entry for entry in found if entry is not None and entry.status != DELETED),
            next_cursor=following if isinstance(following, str) and following else None,
        )


class GetRegistryEntry:
    """One version of an entry, for admins. Raises: FORBIDDEN, NOT_FOUND `mcp_registry_not_found`,
    `mcp_registry_entry_not_found`, UNAVAILABLE `mcp_registry_unavailable`."""

    def __init__(self, *, registries: McpRegistries) -> None:
        self._registries = registries

    async def execute(self, principal: Principal, registry: str, name: str, version: str = LATEST) -> RegistryEntry:
        principal.require(Permission.SERVERS_MANAGE)
        require_registry(self._registries, registry)
        document = await self._registries.version(registry, name, version) if NAME.fullmatch(name) else None
        entry = None if document is None else read_entry_document(document)
        if entry is not None and (entry.name != name or entry.status == DELETED):
            entry = None
        return existing(entry, "MCP registry entry", name)


def require_registry(registries: McpRegistries, registry: str) -> None:
    """Raises NOT_FOUND `mcp_registry_not_found`."""
    if registry not in registries.names:
        raise not_found("MCP registry", registry)
