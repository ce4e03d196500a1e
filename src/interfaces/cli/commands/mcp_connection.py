"""`dragoman mcp`: connecting, disconnecting and refreshing servers."""

import typer

from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import ServerArgument
from interfaces.cli.mcp_view import show_tools
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.mcp_servers.views import McpServerToolsView, ServerStatusView


def connect_server(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Connect a server and list its tools. Earlier failures do not matter. For servers with
    isolation `run` or `thread` this only tests the connection."""
    session = session_of(context)

    async def connect(api: ServiceApi) -> None:
        document = await api.post(path_to("mcp-servers", slug, "connect"))
        status = read_as(ServerStatusView, document)
        tools = "" if status["tool_count"] is None else f" with {status['tool_count']} tools"
        session.terminal.note(f"{slug} is {status['state']}{tools}.")
        if as_json:
            session.terminal.json(document)

    session.perform(connect)


def disconnect_server(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Close a server's connections after their calls. A later call connects again."""
    session = session_of(context)

    async def disconnect(api: ServiceApi) -> None:
        document = await api.post(path_to("mcp-servers", slug, "disconnect"))
        session.terminal.note(f"{slug} is {read_as(ServerStatusView, document)['state']}.")
        if as_json:
            session.terminal.json(document)

    session.perform(disconnect)


def refresh_server(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """List a server's tools now. Runs that start afterwards see the new list."""
    session = session_of(context)
    session.show(
        McpServerToolsView,
        lambda api: api.post(path_to("mcp-servers", slug, "refresh")),
        lambda answer: show_tools(session.terminal, slug, answer),
        as_json=as_json,
    )
