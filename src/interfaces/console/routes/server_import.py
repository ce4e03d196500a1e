"""MCP servers: importing the file of a desktop client, after a preview."""

import hashlib

from litestar import Response, get, post
from litestar.di import NamedDependency

from application.mcp.import_mcp_servers import ImportMcpServers, ImportMcpServersCommand
from application.mcp.preview_mcp_import import PreviewMcpImport
from domain.errors import Violation, invalid
from domain.identity.permission import Permission
from interfaces.client_files import listed_servers, plain_json
from interfaces.console.faults import FormCheck
from interfaces.console.json_text import JsonTextError, json_of
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.http.bodies import decoded_body
from interfaces.http.mcp_servers.schemas import ImportBody

IMPORT = "/servers-import"


@get(IMPORT)
async def show_import(request: ConsoleRequest, pages: NamedDependency[Pages]) -> Response[str]:
    request.principal.require(Permission.SERVERS_MANAGE)
    return pages.show(request, "server_import.html")


@post(f"{IMPORT}/preview", status_code=200)
async def preview_import(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    preview_mcp_import: NamedDependency[PreviewMcpImport],
) -> Response[str]:
    """The servers that the import would create or skip, and the values stored as secrets.
    Creates nothing."""
    with FormCheck() as check:
        command = _command(request, data)
        entries = await preview_mcp_import.execute(command)
        context = {"entries": entries, "seen": _digest(data)}
        return pages.show(request, "parts/import_preview.html", context)
    return check.shown(pages, request)


@post(IMPORT, status_code=200)
async def import_servers(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    import_mcp_servers: NamedDependency[ImportMcpServers],
) -> Response[str]:
    """Create the servers, if the text is that of the preview."""
    request.principal.require(Permission.SERVERS_MANAGE)
    with FormCheck() as check:
        if data.get("seen") != _digest(data):
            fault = Violation(path="file", message="has changed since the preview; preview it again")
            raise invalid("import_changed", "The file differs from the preview.", fault)
        entries = await import_mcp_servers.execute(_command(request, data))
        return pages.show(request, "parts/imported.html", {"entries": entries})
    return check.shown(pages, request)


def _command(request: ConsoleRequest, data: Form) -> ImportMcpServersCommand:
    """Raises INVALID."""
    request.principal.require(Permission.SERVERS_MANAGE)
    try:
        document = json_of(plain_json(data.get("file", "")))
    except JsonTextError as error:
        raise _wrong(str(error)) from None
    # Such files also contain other settings of their clients.
    servers = listed_servers(document)
    if servers is None:
        raise _wrong('must be a JSON object with an object "mcpServers"')
    body = decoded_body(ImportBody, {"mcpServers": servers})
    return ImportMcpServersCommand(principal=request.principal, entries=body.to_entries())


def _wrong(message: str) -> Exception:
    return invalid("import_invalid", "The file cannot be read.", Violation(path="file", message=message))


def _digest(data: Form) -> str:
    return hashlib.sha256(data.get("file", "").encode()).hexdigest()
