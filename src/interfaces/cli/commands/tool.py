"""`dragoman tool`: what tools there are."""

from typing import Annotated

import typer

from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.shapes import ListedTool, entries_of
from interfaces.cli.terminal import one_line

_DESCRIPTION_LIMIT = 80

tool_app = typer.Typer(help="List tools.", no_args_is_help=True, epilog="Example: dragoman tool list --agent guide")


@tool_app.callback()
def _tools() -> None:
    """List tools."""


@tool_app.command("list", epilog="Example: dragoman tool list --agent guide")
def list_tools(
    context: typer.Context,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Only the tools of this agent, by id or name.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List native tools and those of MCP servers, as last seen."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        page = await api.get(path_to("tools"), {} if agent is None else {"agent": agent})
        if as_json:
            session.terminal.json(page)
            return
        session.terminal.table(
            ("name", "type", "server", "health", "description"),
            [
                (
                    tool.name,
                    tool.type,
                    tool.server or "",
                    tool.health or "",
                    one_line(tool.description, _DESCRIPTION_LIMIT),
                )
                for tool in entries_of(ListedTool, page)
            ],
            empty="There are no tools. Register an MCP server with `dragoman mcp add`.",
        )

    session.perform(show)
