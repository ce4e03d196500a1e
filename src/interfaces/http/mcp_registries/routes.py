"""Routes of the configured MCP registries."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, PathParameter, QueryParameter

from application.mcp.add_registry_server import AddRegistryServer, AddRegistryServerCommand
from application.mcp.check_registry_version import CheckRegistryVersion
from application.mcp.registries import GetRegistryEntry, ListMcpRegistries, SearchMcpRegistry
from application.system.pages import DEFAULT_PAGE_SIZE
from interfaces.http.mcp_registries.schemas import AddRegistryServerBody
from interfaces.http.mcp_registries.views import (
    McpRegistryList,
    RegistryEntryPage,
    RegistryEntryView,
    RegistryVersionView,
    entry_view,
)
from interfaces.http.mcp_servers.views import McpServerView, server_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import ServerPath
from interfaces.http.preconditions import etag
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="MCP registries", description="The MCP registries that servers are added from.")
Registry = Annotated[str, PathParameter(description="The name of a configured registry.")]
Namespace = Annotated[str, PathParameter(description="The part before the slash of an entry's name.")]
Name = Annotated[str, PathParameter(description="The part after the slash of an entry's name.")]


@get("/mcp-registries", summary="List MCP registries", responses=documented(403))
async def list_mcp_registries(
    request: ApiRequest, list_mcp_registries: NamedDependency[ListMcpRegistries]
) -> McpRegistryList:
    """Requires the role admin. The registries that `DRAGOMAN_MCP_REGISTRIES` names."""
    names = await list_mcp_registries.execute(request.principal)
    return {"data": [{"name": name} for name in names]}


@get("/mcp-servers/{server:str}/newer-version", summary="Check a server's registry", responses=documented(403, 404))
async def check_registry_version(
    request: ApiRequest, server: ServerPath, check_registry_version: NamedDependency[CheckRegistryVersion]
) -> RegistryVersionView:
    """Requires the role admin. Whether the registry that the server was added from has a newer
    version."""
    found = await check_registry_version.execute(request.principal, server)
    return {
        "registry_entry": None if found.origin is None else str(found.origin),
        "newer_version": found.newer,
    }


@get("/mcp-registries/{registry:str}/servers", summary="Search an MCP registry", responses=documented(403, 404))
async def search_mcp_registry(
    *,
    request: ApiRequest,
    registry: Registry,
    search_mcp_registry: NamedDependency[SearchMcpRegistry],
    search: Annotated[str, QueryParameter(description="A part of the name.", max_length=200)] = "",
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> RegistryEntryPage:
    """Requires the role admin. The latest versions, in the registry's order. An answer may be five
    minutes old."""
    found = await search_mcp_registry.execute(request.principal, registry, search, limit=limit, cursor=cursor)
    return {"data": [entry_view(entry) for entry in found.entries], "next_cursor": found.next_cursor}


@get(
    "/mcp-registries/{registry:str}/servers/{namespace:str}/{name:str}",
    summary="Read an entry of an MCP registry",
    responses=documented(403, 404),
)
async def get_registry_entry(
    *,
    request: ApiRequest,
    registry: Registry,
    namespace: Namespace,
    name: Name,
    get_registry_entry: NamedDependency[GetRegistryEntry],
    version: Annotated[str, QueryParameter(description="Its version.", max_length=255)] = "latest",
) -> RegistryEntryView:
    """Requires the role admin. What it can be started from or reached at, and which values that
    takes."""
    return entry_view(await get_registry_entry.execute(request.principal, registry, f"{namespace}/{name}", version))


@post(
    "/mcp-registries/{registry:str}/servers/{namespace:str}/{name:str}",
    summary="Register an entry of an MCP registry as a server",
    responses=documented(403, 404, 409, 413),
)
async def add_registry_server(
    *,
    request: ApiRequest,
    registry: Registry,
    namespace: Namespace,
    name: Name,
    data: JSONBody[AddRegistryServerBody],
    add_registry_server: NamedDependency[AddRegistryServer],
) -> Response[McpServerView]:
    """Requires the role admin. Nothing is installed or started."""
    server = await add_registry_server.execute(
        AddRegistryServerCommand(
            principal=request.principal,
            registry=registry,
            name=f"{namespace}/{name}",
            version=data.version,
            option=data.option,
            slug=data.slug,
            inputs=data.to_inputs(),
        )
    )
    headers = {"Location": f"/v1/mcp-servers/{server.id}", **etag(server.version)}
    return Response(server_view(server), headers=headers)
