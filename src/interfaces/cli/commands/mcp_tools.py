"""`dragoman mcp`: the tools of servers, and their approval."""

from typing import Annotated

import typer

from domain.json_value import JsonValue
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import ServerArgument
from interfaces.cli.failures import BadUsage
from interfaces.cli.mcp_view import is_quarantined, show_difference, show_tools
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.mcp_servers.views import McpServerToolsView


def list_tools(
    context: typer.Context,
    slug: ServerArgument,
    refresh: Annotated[bool, typer.Option("--refresh", help="List the tools again on the server.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the tools of a server, as last listed."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        if refresh:
            document = await api.post(path_to("mcp-servers", slug, "refresh"))
        else:
            document = await api.get(path_to("mcp-servers", slug, "tools"))
        if as_json:
            session.terminal.json(document)
            return
        show_tools(session.terminal, slug, read_as(McpServerToolsView, document))

    session.perform(show)


def approve_tools(
    context: typer.Context,
    *,
    slug: ServerArgument,
    tool: Annotated[str | None, typer.Argument(metavar="TOOL", help="The server's own name of the tool.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Approve every tool in quarantine.")] = False,
    digest: Annotated[
        str | None,
        typer.Option("--digest", metavar="DIGEST", help="Approve TOOL only if this is still its definition."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Approve tools that are new or changed since their approval. Without TOOL and --all, show
    the differences."""
    session = session_of(context)
    if tool is not None and everything:
        raise BadUsage("Give either TOOL or --all.")
    if digest is not None and tool is None:
        raise BadUsage("--digest requires a TOOL.")

    async def approve(api: ServiceApi) -> None:
        found = read_as(McpServerToolsView, await api.get(path_to("mcp-servers", slug, "tools")))["data"]
        named = [entry for entry in found if entry["name"] == tool]
        if tool is not None and not named:
            raise BadUsage(f"{slug} lists no tool {tool!r}. `dragoman mcp tools {slug}` shows them.")
        meant = [entry for entry in (named or found) if is_quarantined(entry)]
        answers: list[JsonValue] = []
        for entry in meant:
            if not as_json:
                show_difference(session.terminal, entry)
            if tool is not None or everything:
                path = path_to("mcp-servers", slug, "tools", entry["name"], "approve")
                # Approves exactly the shown definition.
                answers.append(await api.post(path, {"digest": digest or entry["digest"]}))
                session.terminal.note(f"Approved {entry['name']}.")
            else:
                answers.append({"name": entry["name"], "digest": entry["digest"], "diff": entry.get("diff", "")})
        if as_json:
            session.terminal.json({"data": answers})
        elif not meant:
            session.terminal.note(f"Nothing of {slug} is in quarantine." if tool is None else f"{tool} is approved.")

    session.perform(approve)
