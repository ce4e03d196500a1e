"""Routes of MCP servers."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.mcp.approve_definition import ApproveDefinition, ApproveDefinitionCommand
from application.mcp.authorize_mcp_server import AuthorizeMcpServer, AuthorizeMcpServerCommand
from application.mcp.check_mcp_server import CheckMcpServer, CheckMcpServerCommand
from application.mcp.delete_mcp_server import DeleteMcpServer, DeleteMcpServerCommand
from application.mcp.disconnect_mcp_server import DisconnectMcpServer, DisconnectMcpServerCommand
from application.mcp.import_mcp_servers import ImportMcpServers, ImportMcpServersCommand
from application.mcp.install_mcp_server import InstallMcpServer, InstallMcpServerCommand
from application.mcp.queries import (
    GetMcpServer,
    GetMcpServerLogs,
    GetMcpServerStatus,
    GetMcpServerTools,
    ListMcpServers,
)
from application.mcp.refresh_mcp_server import RefreshMcpServer, RefreshMcpServerCommand
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from application.mcp.reject_definition import RejectDefinition, RejectDefinitionCommand
from application.mcp.uninstall_mcp_server import UninstallMcpServer, UninstallMcpServerCommand
from application.mcp.update_mcp_server import UpdateMcpServer, UpdateMcpServerCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from interfaces.http.mcp_servers.auth_views import AuthorizationView, authorization_view
from interfaces.http.mcp_servers.result_views import (
    import_view,
    outcome_view,
    pinned_tool_view,
    status_view,
    tools_view,
)
from interfaces.http.mcp_servers.schemas import (
    ApproveDefinitionBody,
    ImportBody,
    McpServerBody,
    RejectDefinitionBody,
    TestMcpServerBody,
    UpdateMcpServerBody,
)
from interfaces.http.mcp_servers.views import (
    ImportView,
    McpServerPage,
    McpServerToolsView,
    McpServerView,
    PinnedToolView,
    ServerLogsView,
    ServerStatusView,
    TestResultView,
    server_view,
)
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit, WholeLimit
from interfaces.http.paths import ServerPath, ToolPath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="MCP servers", description="MCP servers, their connections, installations and tools.")


@post("/mcp-servers", summary="Register an MCP server", responses=documented(403, 409, 413))
async def register_mcp_server(
    request: ApiRequest, data: JSONBody[McpServerBody], register_mcp_server: NamedDependency[RegisterMcpServer]
) -> Response[McpServerView]:
    """Requires the role admin. Registering starts nothing; test the server to see whether it
    works."""
    server = await register_mcp_server.execute(
        RegisterMcpServerCommand(principal=request.principal, config=data.to_config())
    )
    headers = {"Location": f"/v1/mcp-servers/{server.id}", **etag(server.version)}
    return Response(server_view(server), headers=headers)


@get("/mcp-servers", summary="List MCP servers", responses=documented())
async def list_mcp_servers(
    *,
    request: ApiRequest,
    list_mcp_servers: NamedDependency[ListMcpServers],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> McpServerPage:
    """Newest first."""
    return page_view(
        await list_mcp_servers.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        server_view,
    )


@get("/mcp-servers/{server:str}", summary="Read an MCP server", responses=documented(404))
async def get_mcp_server(
    request: ApiRequest, server: ServerPath, get_mcp_server: NamedDependency[GetMcpServer]
) -> Response[McpServerView]:
    """By id or slug."""
    found = await get_mcp_server.execute(principal=request.principal, server=server)
    return Response(server_view(found), headers=etag(found.version))


@patch(
    "/mcp-servers/{server:str}",
    summary="Change an MCP server",
    responses=documented(403, 404, 409, 412, 413),
)
async def update_mcp_server(
    request: ApiRequest,
    server: ServerPath,
    data: JSONBody[UpdateMcpServerBody],
    update_mcp_server: NamedDependency[UpdateMcpServer],
    if_match: IfMatch = None,
) -> Response[McpServerView]:
    """Requires the role admin. Connections of the previous version close after their calls."""
    changed = await update_mcp_server.execute(
        UpdateMcpServerCommand(
            principal=request.principal,
            server=server,
            changes=data.to_changes(),
            env=data.to_env_changes(),
            headers=data.to_header_changes(),
            expected_version=expected_version(if_match),
        )
    )
    return Response(server_view(changed), headers=etag(changed.version))


@delete("/mcp-servers/{server:str}", summary="Delete an MCP server", responses=documented(403, 404))
async def delete_mcp_server(
    request: ApiRequest, server: ServerPath, delete_mcp_server: NamedDependency[DeleteMcpServer]
) -> None:
    """Requires the role admin. Its tools become unavailable to agents that list it."""
    await delete_mcp_server.execute(DeleteMcpServerCommand(principal=request.principal, server=server))


@post(
    "/mcp-servers/test",
    summary="Test an unsaved MCP server",
    status_code=200,
    responses=documented(403, 413),
)
async def test_unsaved_mcp_server(
    request: ApiRequest, data: JSONBody[TestMcpServerBody], check_mcp_server: NamedDependency[CheckMcpServer]
) -> TestResultView:
    """Requires the role admin. For a broken server the response has `ok: false`, within bounded
    time."""
    command = CheckMcpServerCommand(principal=request.principal, subject=data.to_config())
    return outcome_view(await check_mcp_server.execute(command))


@post(
    "/mcp-servers/{server:str}/test",
    summary="Test an MCP server",
    status_code=200,
    responses=documented(403, 404),
)
async def test_saved_mcp_server(
    request: ApiRequest, server: ServerPath, check_mcp_server: NamedDependency[CheckMcpServer]
) -> TestResultView:
    """Requires the role admin. Opens a separate connection. For a broken server the response has
    `ok: false`."""
    command = CheckMcpServerCommand(principal=request.principal, subject=server)
    return outcome_view(await check_mcp_server.execute(command))


@post(
    "/mcp-servers/{server:str}/refresh",
    summary="Refresh an MCP server's tools",
    status_code=200,
    responses=documented(403, 404, 409, 503),
)
async def refresh_mcp_server(
    request: ApiRequest,
    server: ServerPath,
    refresh_mcp_server: NamedDependency[RefreshMcpServer],
    get_mcp_server_tools: NamedDependency[GetMcpServerTools],
) -> McpServerToolsView:
    """Requires the role operator. Runs that begin afterwards see the new list."""
    await refresh_mcp_server.execute(RefreshMcpServerCommand(principal=request.principal, server=server))
    return await tools_view(await get_mcp_server_tools.execute(principal=request.principal, server=server))


@post(
    "/mcp-servers/{server:str}/connect",
    summary="Connect an MCP server",
    status_code=200,
    responses=documented(403, 404, 409, 503),
)
async def connect_mcp_server(
    request: ApiRequest,
    server: ServerPath,
    refresh_mcp_server: NamedDependency[RefreshMcpServer],
    get_mcp_server_status: NamedDependency[GetMcpServerStatus],
) -> ServerStatusView:
    """Requires the role operator. Connects and lists the tools. A server with isolation `run` or
    `thread` connects again for each run or thread."""
    await refresh_mcp_server.execute(RefreshMcpServerCommand(principal=request.principal, server=server))
    return status_view(await get_mcp_server_status.execute(principal=request.principal, server=server))


@post(
    "/mcp-servers/{server:str}/disconnect",
    summary="Disconnect an MCP server",
    status_code=200,
    responses=documented(403, 404),
)
async def disconnect_mcp_server(
    request: ApiRequest, server: ServerPath, disconnect_mcp_server: NamedDependency[DisconnectMcpServer]
) -> ServerStatusView:
    """Requires the role operator. Calls in flight finish; a later call connects again."""
    command = DisconnectMcpServerCommand(principal=request.principal, server=server)
    return status_view(await disconnect_mcp_server.execute(command))


@post(
    "/mcp-servers/{server:str}/authorize",
    summary="Start authorizing Dragoman at an MCP server",
    status_code=200,
    responses=documented(403, 404, 409, 503),
)
async def authorize_mcp_server(
    request: ApiRequest, server: ServerPath, authorize_mcp_server: NamedDependency[AuthorizeMcpServer]
) -> AuthorizationView:
    """Requires the role admin. For `auth` of type `oauth_authorization_code`: open the URL in a
    browser, once, before it expires. The authorization server redirects the browser to this
    service."""
    command = AuthorizeMcpServerCommand(principal=request.principal, server=server)
    return authorization_view(await authorize_mcp_server.execute(command))


@get("/mcp-servers/{server:str}/tools", summary="List an MCP server's tools", responses=documented(404))
async def get_mcp_server_tools(
    *,
    request: ApiRequest,
    server: ServerPath,
    get_mcp_server_tools: NamedDependency[GetMcpServerTools],
    limit: WholeLimit = None,
    cursor: PageCursor = None,
) -> McpServerToolsView:
    """The last known list; nothing is sent to the server. A tool that is new or changed since its
    approval is `quarantined` until a person approves or rejects it. Both are hidden from runs, and
    have a `diff`."""
    return await tools_view(
        await get_mcp_server_tools.execute(principal=request.principal, server=server), limit=limit, cursor=cursor
    )


@post(
    "/mcp-servers/{server:str}/tools/{tool:str}/approve",
    summary="Approve a tool's current definition",
    status_code=200,
    responses=documented(403, 404, 409, 413),
)
async def approve_definition(
    *,
    request: ApiRequest,
    server: ServerPath,
    tool: ToolPath,
    approve_definition: NamedDependency[ApproveDefinition],
    get_mcp_server: NamedDependency[GetMcpServer],
    data: JSONBody[ApproveDefinitionBody | None] = None,
) -> PinnedToolView:
    """Requires the role admin. The tool leaves quarantine. With a `digest`, only if it matches
    the current definition. The body is optional."""
    approved = await approve_definition.execute(
        ApproveDefinitionCommand(
            principal=request.principal, server=server, tool=tool, digest=None if data is None else data.digest
        )
    )
    found = await get_mcp_server.execute(principal=request.principal, server=server)
    return pinned_tool_view(found.config.slug, approved)


@post(
    "/mcp-servers/{server:str}/tools/{tool:str}/reject",
    summary="Reject a tool's current definition",
    status_code=200,
    responses=documented(403, 404, 409, 413),
)
async def reject_definition(
    *,
    request: ApiRequest,
    server: ServerPath,
    tool: ToolPath,
    reject_definition: NamedDependency[RejectDefinition],
    get_mcp_server: NamedDependency[GetMcpServer],
    data: JSONBody[RejectDefinitionBody | None] = None,
) -> PinnedToolView:
    """Requires the role admin. The tool stays hidden from runs and leaves the inbox, until its
    definition changes or is approved. With a `digest`, only if it matches the current definition.
    The body is optional."""
    given = RejectDefinitionBody() if data is None else data
    command = RejectDefinitionCommand(
        principal=request.principal, server=server, tool=tool, digest=given.digest, reason=given.reason
    )
    rejected = await reject_definition.execute(command)
    found = await get_mcp_server.execute(principal=request.principal, server=server)
    return pinned_tool_view(found.config.slug, rejected)


@get("/mcp-servers/{server:str}/status", summary="Read an MCP server's status", responses=documented(404))
async def get_mcp_server_status(
    request: ApiRequest, server: ServerPath, get_mcp_server_status: NamedDependency[GetMcpServerStatus]
) -> ServerStatusView:
    """Reading the status does not connect."""
    return status_view(await get_mcp_server_status.execute(principal=request.principal, server=server))


@get(
    "/mcp-servers/{server:str}/logs",
    summary="Read an MCP server's log",
    responses=documented(403, 404),
)
async def get_mcp_server_logs(
    request: ApiRequest, server: ServerPath, get_mcp_server_logs: NamedDependency[GetMcpServerLogs]
) -> ServerLogsView:
    """Requires the role operator."""
    return {"text": await get_mcp_server_logs.execute(principal=request.principal, server=server)}


@post(
    "/mcp-servers/{server:str}/install",
    summary="Install an MCP server",
    status_code=202,
    responses=documented(403, 404, 409),
)
async def install_mcp_server(
    request: ApiRequest, server: ServerPath, install_mcp_server: NamedDependency[InstallMcpServer]
) -> ServerStatusView:
    """Requires the role admin. Installs in the background; the status shows the progress.
    Installed packages are never updated: uninstall first to install another version."""
    command = InstallMcpServerCommand(principal=request.principal, server=server)
    return status_view(await install_mcp_server.execute(command))


@post(
    "/mcp-servers/{server:str}/uninstall",
    summary="Uninstall an MCP server",
    status_code=202,
    responses=documented(403, 404, 412),
)
async def uninstall_mcp_server(
    request: ApiRequest, server: ServerPath, uninstall_mcp_server: NamedDependency[UninstallMcpServer]
) -> ServerStatusView:
    """Requires the role admin. Cancels an installation in progress; the registration stays.
    Complete when this responds."""
    command = UninstallMcpServerCommand(principal=request.principal, server=server)
    return status_view(await uninstall_mcp_server.execute(command))


@post(
    "/mcp-servers/import",
    summary="Import MCP servers from a desktop client's file",
    status_code=200,
    responses=documented(403, 413),
)
async def import_mcp_servers(
    request: ApiRequest, data: JSONBody[ImportBody], import_mcp_servers: NamedDependency[ImportMcpServers]
) -> ImportView:
    """Requires the role admin. Each entry becomes a server or is skipped with a reason. Nothing
    is installed or started."""
    command = ImportMcpServersCommand(principal=request.principal, entries=data.to_entries())
    return import_view(await import_mcp_servers.execute(command))
