"""`dragoman mcp`: the tools of servers, and their approval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import ServerArgument
from interfaces.cli.failures import BadUsage
from interfaces.cli.mcp_view import is_quarantined, show_difference, show_tools
from interfaces.cli.session import JsonFlag, Session, session_of
from interfaces.http.mcp_servers.views import McpServerToolsView, PinnedToolView


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


ToolArgument = Annotated[str | None, typer.Argument(metavar="TOOL", help="The server's own name of the tool.")]
DigestOption = Annotated[
    str | None,
    typer.Option("--digest", metavar="DIGEST", help="Only if this is still the definition of TOOL."),
]


def approve_tools(
    context: typer.Context,
    *,
    slug: ServerArgument,
    tool: ToolArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Approve every tool in quarantine.")] = False,
    digest: DigestOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Approve new, changed or rejected tools. Without TOOL and --all, show the differences."""
    decision = _Decision(verb="approve", done="Approved", states=("quarantined", "rejected"), fields={})
    _decide(session_of(context), decision, slug, tool, everything=everything, digest=digest, as_json=as_json)


def reject_tools(
    context: typer.Context,
    *,
    slug: ServerArgument,
    tool: ToolArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Reject every tool in quarantine.")] = False,
    digest: DigestOption = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for other people.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Reject new or changed tools. Agents do not get them, and they wait for no one until they
    change again. Without TOOL and --all, show the differences."""
    fields: JsonObject = {} if reason is None else {"reason": reason}
    decision = _Decision(verb="reject", done="Rejected", states=("quarantined",), fields=fields)
    _decide(session_of(context), decision, slug, tool, everything=everything, digest=digest, as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """What is done with tools that are in one of these states when they are named; all of a server
    are those that wait."""

    verb: str
    done: str
    states: tuple[str, ...]
    fields: JsonObject


def _decide(
    session: Session,
    decision: _Decision,
    slug: str,
    tool: str | None,
    *,
    everything: bool,
    digest: str | None,
    as_json: bool,
) -> None:
    if tool is not None and everything:
        raise BadUsage("Give either TOOL or --all.")
    if digest is not None and tool is None:
        raise BadUsage("--digest requires a TOOL.")

    async def decide(api: ServiceApi) -> None:
        found = read_as(McpServerToolsView, await api.get(path_to("mcp-servers", slug, "tools")))["data"]
        if tool is None:
            meant = [entry for entry in found if is_quarantined(entry)]
            left = f"Nothing of {slug} is in quarantine."
        else:
            named = _named(found, slug, tool)
            meant = [entry for entry in named if entry["state"] in decision.states]
            left = f"{tool} is {named[0]['state']}."
        answers: list[JsonValue] = []
        for entry in meant:
            if not as_json:
                show_difference(session.terminal, entry)
            if tool is not None or everything:
                path = path_to("mcp-servers", slug, "tools", entry["name"], decision.verb)
                # Decides about exactly the shown definition.
                answers.append(await api.post(path, {"digest": digest or entry["digest"], **decision.fields}))
                session.terminal.note(f"{decision.done} {entry['name']}.")
            else:
                answers.append({"name": entry["name"], "digest": entry["digest"], "diff": entry.get("diff", "")})
        if as_json:
            session.terminal.json({"data": answers})
        elif not meant:
            session.terminal.note(left)

    session.perform(decide)


def _named(tools: Sequence[PinnedToolView], slug: str, tool: str) -> list[PinnedToolView]:
    found = [entry for entry in tools if entry["name"] == tool]
    if not found:
        raise BadUsage(f"{slug} lists no tool {tool!r}. `dragoman mcp tools {slug}` shows them.")
    return found
