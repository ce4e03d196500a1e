"""Routes of the MCP registry API. They are not in the OpenAPI document: their shapes are the
registry's."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter

from application.identity.ports import OrganizationStore
from application.mcp.mcp_switch import McpKinds, McpSwitch
from application.mcp.oauth_client import PublicAddress
from application.mcp.queries import GetMcpServer, ListMcpServers
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from domain.errors import existing, invalid, not_found
from domain.identity.api_key import Principal
from domain.ids import ApiKeyId, OrganizationId
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from interfaces.http.registry.server_json import namespace_of, server_json, version_of
from interfaces.http.requests import ApiRequest

LATEST = "latest"
READER_ID = ApiKeyId("registry")
"""The key of those who read without one."""
KEPT_S = 5.0
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE_SIZE)]
Text = Annotated[str | None, QueryParameter(max_length=300)]


class RegistryServers:
    """Rules:
    - The enabled servers of an organization, of kinds that it may use, in the order of their slugs;
      none while MCP is off.
    - Readers without a key see what was read for others of them up to `KEPT_S` ago.
    """

    def __init__(
        self,
        *,
        list_mcp_servers: ListMcpServers,
        get_mcp_server: GetMcpServer,
        public_address: PublicAddress,
        mcp_switch: McpSwitch,
        organizations: OrganizationStore,
        clock: Clock,
    ) -> None:
        self._switch = mcp_switch
        self._organizations = organizations
        self._clock = clock
        self._kept: tuple[float, tuple[McpServer, ...]] | None = None
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
        """A page of entries. `after` is the name of the entry before. Raises NOT_FOUND
        `organization_not_found`, INVALID `cursor_invalid`."""
        namespace = namespace_of(self._address.url)
        if after and not after.startswith(f"{namespace}/"):
            raise invalid("cursor_invalid", "The cursor is not from this list.")
        entries: list[tuple[str, JsonObject]] = []
        for server in await self._listed(principal):
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
        kinds = await self._permitted(principal.organization_id)
        if kinds is not None and namespace == namespace_of(self._address.url):
            server = await self._get.execute(principal, slug)
            is_listed = _is_listed(server, kinds) and server.config.slug == slug
            entry = server_json(server, namespace) if is_listed else None
            if entry is not None:
                if version not in (LATEST, version_of(server)):
                    raise not_found("MCP server version", f"{name} {version}")
                return entry
        raise not_found("MCP server", name)

    async def _listed(self, principal: Principal) -> list[McpServer]:
        kinds = await self._permitted(principal.organization_id)
        if kinds is None:
            return []
        return [server for server in await self._all(principal) if _is_listed(server, kinds)]

    async def _permitted(self, organization_id: OrganizationId) -> McpKinds | None:
        kinds = await self._switch.permitted(organization_id)
        if kinds is None:
            existing(await self._organizations.get(organization_id), "organization", organization_id)
        return kinds

    async def _all(self, principal: Principal) -> tuple[McpServer, ...]:
        now = self._clock.monotonic()
        is_anonymous = principal.key_id == READER_ID
        if is_anonymous and self._kept is not None and now - self._kept[0] < KEPT_S:
            return self._kept[1]
        found, cursor = await self._page(principal, None)
        while cursor is not None:
            more, cursor = await self._page(principal, cursor)
            found += more
        if is_anonymous:
            self._kept = (now, found)
        return found

    async def _page(self, principal: Principal, cursor: str | None) -> tuple[tuple[McpServer, ...], str | None]:
        page = await self._list.execute(principal, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
        return tuple(page.items), page.next_cursor


def _is_listed(server: McpServer, kinds: McpKinds) -> bool:
    return server.config.enabled and kinds.permit(server.config)


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
) -> Mapping[str, object]:
    """The servers of the organization, by name."""
    return await registry_servers.page(
        request.principal, limit=limit, after=cursor, search=search or "", version=version, since=_moment(updated_since)
    )


@get("/servers/{namespace:str}/{slug:str}/versions")
async def list_registry_versions(
    request: ApiRequest,
    namespace: FromPath[str],
    slug: FromPath[str],
    registry_servers: NamedDependency[RegistryServers],
) -> Mapping[str, object]:
    """The version that the organization has; no others are known."""
    entry = await registry_servers.one(request.principal, f"{namespace}/{slug}")
    return {"servers": [entry], "metadata": {"count": 1}}


@get("/servers/{namespace:str}/{slug:str}/versions/{version:str}")
async def get_registry_version(
    request: ApiRequest,
    namespace: FromPath[str],
    slug: FromPath[str],
    version: FromPath[str],
    registry_servers: NamedDependency[RegistryServers],
) -> Mapping[str, object]:
    """One version, or `latest`."""
    return await registry_servers.one(request.principal, f"{namespace}/{slug}", version)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise invalid("query_invalid", "updated_since must be a date and time, such as 2026-01-01T12:00:00Z.") from exc
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
