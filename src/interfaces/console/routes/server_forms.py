"""MCP servers: forms to add and change one, with a test before saving."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.identity.queries import ListTeams
from application.mcp.check_mcp_server import CheckMcpServer, CheckMcpServerCommand
from application.mcp.queries import GetMcpServer
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from application.mcp.secret_destinations import address_of, secrets_sent_elsewhere
from application.mcp.update_mcp_server import UpdateMcpServer, UpdateMcpServerCommand, changed_config
from application.secrets.queries import ListSecrets
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.server import (
    McpServer,
    McpServerKind,
)
from interfaces.console.faults import FormCheck, entered_version
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.server_form import AUTH_TYPES, CHOICES, ENTRY_GROUPS, KINDS, MAX_ENTRIES, FilledIn
from interfaces.console.teams import team_choices
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH
from interfaces.http.bodies import decoded_body
from interfaces.http.mcp_servers.schemas import McpServerBody, TestMcpServerBody, UpdateMcpServerBody
from interfaces.http.mcp_servers.views import server_view

NEW = "/servers-new"
"""Not below /servers: a server may be named `new`."""
_FEW = 2
"""Initial empty rows of a form."""
_OF_PERSON = "person:token"
"""What the form offers besides secrets of the organization: one that each person gives."""


@get(NEW)
async def show_new_server(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_secrets: NamedDependency[ListSecrets],
    list_teams: NamedDependency[ListTeams],
    kind: FromQuery[str] = McpServerKind.NPM.value,
) -> Response[str]:
    secrets = await _secret_names(request.principal, list_secrets)
    teams = team_choices(await list_teams.execute(request.principal), None)
    return pages.show(request, "server_form.html", {**_context(_kind(kind), None, secrets), "teams": teams})


@post(NEW, status_code=200)
async def register_server(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    register_mcp_server: NamedDependency[RegisterMcpServer],
) -> Response[str]:
    filled = FilledIn(form=data, kind=_kind(data.get("kind", "")))
    with FormCheck() as check:
        config = decoded_body(McpServerBody, filled.body()).to_config()
        command = RegisterMcpServerCommand(principal=request.principal, config=config)
        return _to_page_of(await register_mcp_server.execute(command))
    return check.shown(pages, request)


@post(f"{NEW}/test", status_code=200)
async def test_new_server(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    check_mcp_server: NamedDependency[CheckMcpServer],
) -> Response[str]:
    """Test the form's settings without saving."""
    filled = FilledIn(form=data, kind=_kind(data.get("kind", "")))
    with FormCheck() as check:
        body = filled.body()
        config = decoded_body(TestMcpServerBody, {**body, "slug": body["slug"] or "test"}).to_config()
        result = await check_mcp_server.execute(CheckMcpServerCommand(principal=request.principal, subject=config))
        return pages.show(request, "parts/form_tested.html", {"result": result})
    return check.shown(pages, request)


@get("/servers/{slug:str}/edit")
async def show_server_form(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    get_mcp_server: NamedDependency[GetMcpServer],
    list_secrets: NamedDependency[ListSecrets],
    list_teams: NamedDependency[ListTeams],
) -> Response[str]:
    secrets = await _secret_names(request.principal, list_secrets)
    server = await get_mcp_server.execute(principal=request.principal, server=slug)
    teams = team_choices(await list_teams.execute(request.principal), server.team)
    context = {**_context(server.config.kind, server, secrets), "teams": teams}
    return pages.show(request, "server_form.html", context)


@post("/servers/{slug:str}/edit", status_code=200)
async def change_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_mcp_server: NamedDependency[GetMcpServer],
    update_mcp_server: NamedDependency[UpdateMcpServer],
) -> Response[str]:
    """Save, unless another user saved since the form was opened."""
    server = await get_mcp_server.execute(principal=request.principal, server=slug)
    with FormCheck() as check:
        changes = _changes(data, server)
        command = UpdateMcpServerCommand(
            principal=request.principal,
            server=server.id,
            changes=changes.to_changes(),
            env=changes.to_env_changes(),
            headers=changes.to_header_changes(),
            expected_version=entered_version(data.get("revision", "")),
        )
        return _to_page_of(await update_mcp_server.execute(command))
    return check.shown(pages, request)


@post("/servers/{slug:str}/edit/test", status_code=200)
async def test_changed_server(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_mcp_server: NamedDependency[GetMcpServer],
    check_mcp_server: NamedDependency[CheckMcpServer],
) -> Response[str]:
    """Test the form's settings without saving, with stored secrets where none was entered. Asks
    for confirmation before stored secrets are sent to another address."""
    request.principal.require(Permission.SERVERS_MANAGE)
    server = await get_mcp_server.execute(principal=request.principal, server=slug)
    with FormCheck() as check:
        changes = _changes(data, server)
        config = changed_config(
            server.config, changes.to_changes(), env=changes.to_env_changes(), headers=changes.to_header_changes()
        )
        sent, address = secrets_sent_elsewhere(server.config, config), address_of(config)
        if sent and data.get("send_secrets_to") != address:
            told = {"secrets": sent, "address": address, "slug": server.config.slug}
            return pages.show(request, "parts/secrets_elsewhere.html", told)
        result = await check_mcp_server.execute(CheckMcpServerCommand(principal=request.principal, subject=config))
        return pages.show(request, "parts/form_tested.html", {"result": result})
    return check.shown(pages, request)


@get("/parts/server-auth")
async def show_auth_fields(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_secrets: NamedDependency[ListSecrets],
    auth_type: Annotated[str, QueryParameter(name="auth.type")] = "",
) -> Response[str]:
    """The fields of an authentication type."""
    secrets = await _secret_names(request.principal, list_secrets)
    auth = {"type": auth_type} if auth_type in AUTH_TYPES else None
    return pages.show(request, "parts/server_auth.html", {"auth": auth, "secrets": [*secrets, _OF_PERSON]})


@get("/parts/server-entry")
async def show_entry(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_secrets: NamedDependency[ListSecrets],
    group: FromQuery[str],
    at: FromQuery[int],
) -> Response[str]:
    """Another row for a variable or a header."""
    if group not in ENTRY_GROUPS or not 0 <= at < MAX_ENTRIES:
        raise NotFoundException
    secrets = await _secret_names(request.principal, list_secrets)
    return pages.show(request, "parts/server_entry.html", {"group": group, "at": at, "secrets": [*secrets, _OF_PERSON]})


def _changes(data: Form, server: McpServer) -> UpdateMcpServerBody:
    filled = FilledIn(form=data, kind=server.config.kind, stored=server.config)
    return decoded_body(UpdateMcpServerBody, filled.body())


def _context(kind: McpServerKind, server: McpServer | None, secrets: list[str]) -> dict[str, object]:
    view = None if server is None else server_view(server)
    return {
        "kind": kind,
        "kinds": KINDS,
        "server": view,
        "auth": None if view is None else view["auth"],
        "auth_types": AUTH_TYPES,
        "choices": CHOICES,
        "groups": {"headers": "Headers"} if kind.is_remote else {"env": "Environment"},
        "few": _FEW,
        "secrets": secrets if kind is McpServerKind.A2A else [*secrets, _OF_PERSON],
        # A package or a copy is installed after saving, and can be tested then.
        "testable": not kind.is_package,
    }


async def _secret_names(principal: Principal, list_secrets: ListSecrets) -> list[str]:
    """Names of the organization's secrets. Raises FORBIDDEN."""
    secrets = await all_of(lambda page: list_secrets.execute(principal=principal, page=page))
    return sorted(secret.name for secret in secrets)


def _kind(name: str) -> McpServerKind:
    if name not in set(McpServerKind):
        raise NotFoundException
    return McpServerKind(name)


def _to_page_of(server: McpServer) -> Response[str]:
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/servers/{server.config.slug}"})
