"""MCP servers: installing with progress, connecting, authorizing, enabling, deleting."""

from dataclasses import replace

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.mcp.authorize_mcp_server import AuthorizeMcpServer, AuthorizeMcpServerCommand
from application.mcp.delete_mcp_server import DeleteMcpServer, DeleteMcpServerCommand
from application.mcp.disconnect_mcp_server import DisconnectMcpServer, DisconnectMcpServerCommand
from application.mcp.install_mcp_server import InstallMcpServer, InstallMcpServerCommand
from application.mcp.queries import GetMcpServer, GetMcpServerStatus
from application.mcp.uninstall_mcp_server import UninstallMcpServer, UninstallMcpServerCommand
from application.mcp.update_mcp_server import UpdateMcpServer, UpdateMcpServerCommand
from domain.identity.permission import Permission
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.servers import ServerPages
from interfaces.console.routes.sign_in import Form
from interfaces.console.toasts import toast
from interfaces.console_paths import PATH

CHANGED = "server-changed"
"""Event of a server's page when its state differs from the page."""
_TELL = {HTMXHeaders.TRIGGER_EVENT.value: CHANGED}


@get("/servers/{slug:str}/state")
async def show_server_state(
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    return pages.show(request, "parts/server.html", await server_pages.of(request.principal, slug))


@get("/servers/{slug:str}/install")
async def show_install(
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    get_mcp_server_status: NamedDependency[GetMcpServerStatus],
) -> Response[str]:
    """Progress of the installation; its end triggers an event of the page."""
    status = await get_mcp_server_status.execute(principal=request.principal, server=slug)
    may_change = request.principal.may(Permission.SERVERS_MANAGE)
    context = {"slug": slug, "install": status.install, "may_change": may_change}
    return pages.show(request, "parts/installing.html", context, headers={} if status.install else _TELL)


@get("/servers/{slug:str}/standing")
async def show_standing(
    request: ConsoleRequest,
    slug: FromPath[str],
    get_mcp_server_status: NamedDependency[GetMcpServerStatus],
    was: FromQuery[str] = "",
) -> Response[None]:
    """Trigger the page's event if the state differs from `was`."""
    status = await get_mcp_server_status.execute(principal=request.principal, server=slug)
    return Response(None, status_code=204, headers={} if status.state.value == was else _TELL)


@post("/servers/{slug:str}/install", status_code=200)
async def install_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    install_mcp_server: NamedDependency[InstallMcpServer],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    await install_mcp_server.execute(InstallMcpServerCommand(principal=request.principal, server=slug))
    return pages.show(request, "parts/server.html", await server_pages.of(request.principal, slug))


@post("/servers/{slug:str}/uninstall", status_code=200)
async def uninstall_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    uninstall_mcp_server: NamedDependency[UninstallMcpServer],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    await uninstall_mcp_server.execute(UninstallMcpServerCommand(principal=request.principal, server=slug))
    return pages.show(request, "parts/server.html", await server_pages.of(request.principal, slug))


@post("/servers/{slug:str}/reinstall", status_code=200)
async def reinstall_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_mcp_server: NamedDependency[GetMcpServer],
    uninstall_mcp_server: NamedDependency[UninstallMcpServer],
    update_mcp_server: NamedDependency[UpdateMcpServer],
    install_mcp_server: NamedDependency[InstallMcpServer],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    """Uninstall, and install another version, by default the newest. An invalid version is
    rejected before anything is removed."""
    principal = request.principal
    principal.require(Permission.SERVERS_MANAGE)
    server = await get_mcp_server.execute(principal=principal, server=slug)
    version = data.get("version", "").strip() or None
    replace(server.config, version=version)
    await uninstall_mcp_server.execute(UninstallMcpServerCommand(principal=principal, server=server.id))
    await update_mcp_server.execute(
        UpdateMcpServerCommand(principal=principal, server=server.id, changes={"version": version})
    )
    await install_mcp_server.execute(InstallMcpServerCommand(principal=principal, server=server.id))
    return pages.show(request, "parts/server.html", await server_pages.of(principal, slug))


@post("/servers/{slug:str}/disconnect", status_code=200)
async def disconnect_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    disconnect_mcp_server: NamedDependency[DisconnectMcpServer],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    """Close its connections; a later call connects again."""
    await disconnect_mcp_server.execute(DisconnectMcpServerCommand(principal=request.principal, server=slug))
    return pages.show(request, "parts/server.html", await server_pages.of(request.principal, slug))


@post("/servers/{slug:str}/switch", status_code=200)
async def switch_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    update_mcp_server: NamedDependency[UpdateMcpServer],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    enabled = data.get("enabled") == "true"
    await update_mcp_server.execute(
        UpdateMcpServerCommand(principal=request.principal, server=slug, changes={"enabled": enabled})
    )
    said = toast(f"The server is {'enabled' if enabled else 'disabled'}.")
    return pages.show(request, "parts/server.html", await server_pages.of(request.principal, slug), headers=said)


@post("/servers/{slug:str}/authorize", status_code=200)
async def authorize_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    authorize_mcp_server: NamedDependency[AuthorizeMcpServer],
    get_mcp_server_status: NamedDependency[GetMcpServerStatus],
) -> Response[str]:
    """The link for consent at the authorization server."""
    principal = request.principal
    begun = await authorize_mcp_server.execute(AuthorizeMcpServerCommand(principal=principal, server=slug))
    status = await get_mcp_server_status.execute(principal=principal, server=slug)
    return pages.show(request, "parts/authorize.html", {"begun": begun, "slug": slug, "state": status.state.value})


@post("/servers/{slug:str}/delete", status_code=200)
async def delete_server(
    request: ConsoleRequest, slug: FromPath[str], delete_mcp_server: NamedDependency[DeleteMcpServer]
) -> Response[str]:
    """Delete the server and its installation."""
    await delete_mcp_server.execute(DeleteMcpServerCommand(principal=request.principal, server=slug))
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/servers"})
