"""Routes of the MCP registry API. They are not in the OpenAPI document: their shapes are the registry's."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter

from application.mcp.oauth_client import PublicAddress
from application.mcp.queries import GetMcpServer, ListMcpServers
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.errors import invalid, not_found
from domain.identity.api_key import Principal
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from interfaces.http.registry.server_json import namespace_of, server_json, version_of
from interfaces.http.requests import ApiRequest

LATEST = "latest"
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE_SIZE)]
Text = Annotated[str | None, QueryParameter(max_length=300)]
_ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
"""IDEs read the registry from pages of another origin. Without credentials of the browser this shows nothing that the
caller could not read itself."""


class RegistryServers:
    """The enabled servers of an organization in the order of their slugs."""

    def __init__(
        self, *, list_mcp_servers: ListMcpServers, get_mcp_server: GetMcpServer, public_address: PublicAddress
    ) -> None:
        self._list = list_mcp_servers
        self._get = get_mcp_server
        self._address = public_address

    async def page(
        self,
        principal: Principal,
        *,
        limit: int,
        after: str | None,
        search: str,
        version: str | None,
        since: datetime | None,
    ) -> JsonObject:
        """A page of entries. `after` is the name of the entry before."""
        namespace = namespace_of(self._address.url)
        entries: list[tuple[str, JsonObject]] = []
        async with aclosing(self._all(principal)) as servers:
            async for server in servers:
                name, entry = f"{namespace}/{server.config.slug}", server_json(server, namespace)
                is_wanted = search.lower() in name.lower() and (since is None or server.updated_at > since)
                if entry is not None and is_wanted and version in (None, LATEST, version_of(server)):
                    entries.append((name, entry))
        entries.sort(key=lambda one: one[0])
        rest = [one for one in entries if after is None or one[0] > after]
        metadata: JsonObject = {"count": len(rest[:limit])}
        if len(rest) > limit:
            metadata["nextCursor"] = rest[limit - 1][0]
        return {"servers": [entry for _, entry in rest[:limit]], "metadata": metadata}

    async def one(self, principal: Principal, name: str, version: str = LATEST) -> JsonObject:
        """The entry of a server. Raises NOT_FOUND."""
        namespace, _, slug = name.rpartition("/")
        if namespace == namespace_of(self._address.url):
            server = await self._get.execute(principal, slug)
            entry = server_json(server, namespace) if server.config.enabled and server.config.slug == slug else None
            if entry is not None and version in (LATEST, version_of(server)):
                return entry
        raise not_found("mcp_server", name)

    async def _all(self, principal: Principal) -> AsyncGenerator[McpServer, None]:
        cursor = None
        while True:
            page = await self._list.execute(principal, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
            for server in page.items:
                if server.config.enabled:
                    yield server
            cursor = page.next_cursor
            if cursor is None:
                return


@get("/servers")
async def list_registry_servers(
    *,
    request: ApiRequest,
    registry_servers: NamedDependency[RegistryServers],
    limit: Limit = 100,
    cursor: Text = None,
    search: Text = None,
    version: Text = None,
    updated_since: Text = None,
) -> Response[Mapping[str, object]]:
    """The servers of the organization, by name."""
    found = await registry_servers.page(
        request.principal, limit=limit, after=cursor, search=search or "", version=version, since=_moment(updated_since)
    )
    return Response(found, headers=_ANY_ORIGIN)


@get("/servers/{namespace:str}/{slug:str}/versions")
async def list_registry_versions(
    request: ApiRequest,
    namespace: FromPath[str],
    slug: FromPath[str],
    registry_servers: NamedDependency[RegistryServers],
) -> Response[Mapping[str, object]]:
    """The version that the organization has; no others are known."""
    entry = await registry_servers.one(request.principal, f"{namespace}/{slug}")
    return Response({"servers": [entry], "metadata": {"count": 1}}, headers=_ANY_ORIGIN)


@get("/servers/{namespace:str}/{slug:str}/versions/{version:str}")
async def get_registry_version(
    request: ApiRequest,
    namespace: FromPath[str],
    slug: FromPath[str],
    version: FromPath[str],
    registry_servers: NamedDependency[RegistryServers],
) -> Response[Mapping[str, object]]:
    """One version, or `latest`."""
    entry = await registry_servers.one(request.principal, f"{namespace}/{slug}", version)
    return Response(entry, headers=_ANY_ORIGIN)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise invalid("query_invalid", "updated_since must be a date and time, such as 2026-01-01T12:00:00Z.") from exc
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
