"""MCP servers: state, tools, and approval of new or changed tools."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter

from application.mcp.approve_definition import ApproveDefinition, ApproveDefinitionCommand
from application.mcp.check_mcp_server import CheckMcpServer, CheckMcpServerCommand
from application.mcp.ports import ServerState, ServerStatus
from application.mcp.queries import DescribeConfinement, GetMcpServerLogs, GetMcpServerStatus, GetMcpServerTools
from application.mcp.refresh_mcp_server import RefreshMcpServer, RefreshMcpServerCommand
from application.mcp.reject_definition import RejectDefinition, RejectDefinitionCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.auth import AuthorizationCodeAuth
from domain.mcp.pinning import DefinitionState, PinnedTool, pinned_tools
from domain.mcp.server import McpServerKind
from interfaces.console.inbox_answers import is_from_inbox, settled
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.overview import Overview
from interfaces.console.routes.sign_in import Form
from interfaces.console.run_starters import RunStarters

MAX_TOOLS = 300
MAX_QUARANTINED = 50
"""Most tools shown: for each in quarantine a diff is computed."""


class ServerPages:
    """Data of a server's page."""

    def __init__(
        self,
        *,
        get_mcp_server_tools: GetMcpServerTools,
        get_mcp_server_status: GetMcpServerStatus,
        get_mcp_server_logs: GetMcpServerLogs,
        describe_confinement: DescribeConfinement,
        run_starters: RunStarters,
    ) -> None:
        self._tools = get_mcp_server_tools
        self._status = get_mcp_server_status
        self._logs = get_mcp_server_logs
        self._confinement = describe_confinement
        self._starters = run_starters

    async def of(self, principal: Principal, slug: str) -> dict[str, object]:
        """The server, its state and its last listed tools. Raises NOT_FOUND."""
        found = await self._tools.execute(principal=principal, server=slug)
        status = await self._status.execute(principal=principal, server=slug)
        catalog = found.catalog
        tools = () if catalog is None else pinned_tools(catalog)
        quarantined = [tool for tool in tools if tool.state is DefinitionState.QUARANTINED]
        rejected = [tool for tool in tools if tool.state is DefinitionState.REJECTED]
        approved = [tool for tool in tools if tool.state is DefinitionState.APPROVED]
        return {
            "server": found.server,
            "catalog": catalog,
            "status": status,
            "quarantined": quarantined[:MAX_QUARANTINED],
            "quarantined_more": max(0, len(quarantined) - MAX_QUARANTINED),
            "rejected": rejected[:MAX_QUARANTINED],
            "rejected_more": max(0, len(rejected) - MAX_QUARANTINED),
            "names": await self._starters.names(principal, (_refuser(tool) for tool in rejected[:MAX_QUARANTINED])),
            "approved": approved[:MAX_TOOLS],
            "approved_more": max(0, len(approved) - MAX_TOOLS),
            "may_change": principal.may(Permission.SERVERS_MANAGE),
            "may_operate": principal.may(Permission.SERVERS_OPERATE),
            "authorized_by_person": isinstance(found.server.config.auth, AuthorizationCodeAuth),
            "problem": "",
            "install_log": await self._install_log(principal, slug, status),
            "confinement": await self._confined(principal, found.server.config.kind),
        }

    async def _confined(self, principal: Principal, kind: McpServerKind) -> str:
        """How a started server is confined, for roles that operate; empty for others, and for
        containers."""
        is_process = not kind.is_remote and kind is not McpServerKind.OCI
        return (
            await self._confinement.execute(principal)
            if is_process and principal.may(Permission.SERVERS_OPERATE)
            else ""
        )

    async def _install_log(self, principal: Principal, slug: str, status: ServerStatus) -> str:
        """The output of a failed installation, for roles that may read logs."""
        failed = status.state is ServerState.NOT_INSTALLED and status.last_error is not None
        if not failed or not principal.may(Permission.SERVERS_OPERATE):
            return ""
        return await self._logs.execute(principal=principal, server=slug)


@get("/servers")
async def show_servers(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    overview: NamedDependency[Overview],
    trouble: FromQuery[str] = "",
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """The newest, or all that a person has to look at."""
    principal = request.principal
    context = {"may_change": principal.may(Permission.SERVERS_MANAGE), "is_of_troubled": bool(trouble)}
    if trouble:
        found = [line for line in await overview.all_servers(principal) if line.quarantined or line.is_troubled]
        return pages.show(request, "servers.html", {**context, "servers": found, "next_cursor": None})
    page = await overview.servers(principal, cursor)
    return pages.show(request, "servers.html", {**context, "servers": page.items, "next_cursor": page.next_cursor})


@get("/servers/{slug:str}")
async def show_server(
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    return pages.show(request, "server.html", await server_pages.of(request.principal, slug))


@get("/servers/{slug:str}/logs")
async def show_logs(
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    get_mcp_server_logs: NamedDependency[GetMcpServerLogs],
) -> Response[str]:
    """The end of its error output."""
    logs = await get_mcp_server_logs.execute(principal=request.principal, server=slug)
    return pages.show(request, "parts/logs.html", {"logs": logs})


@post("/servers/{slug:str}/test", status_code=200)
async def test_server(
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    check_mcp_server: NamedDependency[CheckMcpServer],
) -> Response[str]:
    """Connect separately and list its tools."""
    result = await check_mcp_server.execute(CheckMcpServerCommand(principal=request.principal, subject=slug))
    return pages.show(request, "parts/tested.html", {"result": result})


@post("/servers/{slug:str}/refresh", status_code=200)
async def refresh_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    refresh_mcp_server: NamedDependency[RefreshMcpServer],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    """Connect and list its tools again. The state may change also on failure."""
    problem = ""
    try:
        await refresh_mcp_server.execute(RefreshMcpServerCommand(principal=request.principal, server=slug))
    except ServiceError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise
        problem = error.detail
    context = await server_pages.of(request.principal, slug)
    return pages.show(request, "parts/server.html", {**context, "problem": problem})


@post("/servers/{slug:str}/approve", status_code=200)
async def approve_tool(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    approve_definition: NamedDependency[ApproveDefinition],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    """Release a tool from quarantine, in the shown definition."""
    await approve_definition.execute(
        ApproveDefinitionCommand(
            principal=request.principal, server=slug, tool=data.get("tool", ""), digest=data.get("digest")
        )
    )
    if is_from_inbox(request):
        return settled(pages, request, data.get("tool", ""), "approved")
    return pages.show(request, "parts/server.html", await server_pages.of(request.principal, slug))


@post("/servers/{slug:str}/reject", status_code=200)
async def reject_tool(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    reject_definition: NamedDependency[RejectDefinition],
    server_pages: NamedDependency[ServerPages],
) -> Response[str]:
    """Keep a tool out, in the shown definition."""
    await reject_definition.execute(
        RejectDefinitionCommand(
            principal=request.principal,
            server=slug,
            tool=data.get("tool", ""),
            digest=data.get("digest"),
            reason=data.get("reason") or None,
        )
    )
    if is_from_inbox(request):
        return settled(pages, request, data.get("tool", ""), "rejected")
    return pages.show(request, "parts/server.html", await server_pages.of(request.principal, slug))


def _refuser(tool: PinnedTool) -> str | None:
    return None if tool.rejection is None else tool.rejection.by
