"""`dragoman mcp`: resources and prompts of servers, under the policy of an agent."""

from collections.abc import Mapping
from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.arguments import AGENTS, ServerArgument
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal, one_line, short_json
from interfaces.http.agents.views import AgentView
from interfaces.http.mcp_servers.views import McpServerView
from interfaces.http.server_contents.views import ServerContentsView, ServerContentView

_DESCRIPTION_LIMIT = 100
_ARGUMENT = "ARGUMENT=VALUE"

PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="The agent under whose policy it is. Default: the only one that has the server.",
        autocompletion=AGENTS,
    ),
]


def resources(
    context: typer.Context,
    slug: ServerArgument,
    uri: Annotated[str | None, typer.Argument(metavar="[URI]", help="Read this resource instead.")] = None,
    agent: PolicyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the resources of a server, or read one. It is asked under the policy of an agent."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        chosen = await _agent_of(api, slug, agent)
        if uri is not None:
            body: JsonObject = {"agent": chosen, "uri": uri}
            read = await api.post(path_to("mcp-servers", slug, "resources", "read"), body)
            _show_content(session.terminal, read, "contents", as_json=as_json)
            return
        document = await api.get(path_to("mcp-servers", slug, "contents"), {"agent": chosen})
        if as_json:
            session.terminal.json({name: document.get(name) for name in ("resources", "resource_templates")})
            return
        found = read_as(ServerContentsView, document)
        rows = [_row(entry, "uri", "mimeType") for entry in found["resources"]]
        rows += [_row(entry, "uriTemplate", "mimeType") for entry in found["resource_templates"]]
        session.terminal.table(
            ("uri", "name", "type", "description"), rows, empty=f"{slug} offers no resources to {chosen}."
        )
        if found["resource_templates"]:
            session.terminal.note("In a URI with {names}, put values in their place to read it.")

    session.perform(show)


def prompts(
    context: typer.Context,
    *,
    slug: ServerArgument,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Get this prompt instead.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar=f"[{_ARGUMENT}]...", help="Arguments of the prompt: texts.")
    ] = None,
    agent: PolicyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the prompts of a server, or get one. It is asked under the policy of an agent."""
    session = session_of(context)
    given = dict(map(_argument, arguments or ()))

    async def show(api: ServiceApi) -> None:
        chosen = await _agent_of(api, slug, agent)
        if name is not None:
            body: JsonObject = {"agent": chosen, "name": name, "arguments": {**given}}
            got = await api.post(path_to("mcp-servers", slug, "prompts", "get"), body)
            _show_content(session.terminal, got, "messages", as_json=as_json)
            return
        document = await api.get(path_to("mcp-servers", slug, "contents"), {"agent": chosen})
        if as_json:
            session.terminal.json({"prompts": document.get("prompts")})
            return
        found = read_as(ServerContentsView, document)["prompts"]
        session.terminal.table(
            ("name", "arguments", "description"),
            [(_text(entry, "name"), _arguments(entry), _description(entry)) for entry in found],
            empty=f"{slug} offers no prompts to {chosen}.",
        )

    session.perform(show)


async def _agent_of(api: ServiceApi, slug: str, named: str | None) -> str:
    """The agent that is named, or the only enabled one that has the server. Raises BadUsage."""
    if named is not None:
        return named
    server = read_as(McpServerView, await api.get(path_to("mcp-servers", slug)))["slug"]
    agents = entries_of(AgentView, await listed(api, path_to("agents")))
    having = sorted(each["name"] for each in agents if each["enabled"] and server in each["mcp_servers"])
    if not having:
        raise BadUsage(
            f"No enabled agent has {server}, and its resources and prompts are read under the policy of one. "
            "Name it in the mcp_servers of an agent: dragoman agent apply FILE."
        )
    if len(having) > 1:
        raise BadUsage(f"Choose one with --agent NAME, as its policy applies: {', '.join(having)} have {server}.")
    return having[0]


def _show_content(terminal: Terminal, document: JsonObject, parts: str, *, as_json: bool) -> None:
    """The texts of a result; what is no text is named."""
    if as_json:
        terminal.json(document)
        return
    found = read_as(ServerContentView, document)["result"].get(parts)
    for part in found if isinstance(found, list) else []:
        content = part.get("content", part) if isinstance(part, dict) else {}
        if "role" in part:
            terminal.line(f"{part['role']}:")
        if isinstance(content, dict) and isinstance(content.get("text"), str):
            terminal.line(content["text"])
        else:
            terminal.line(short_json(content))
            terminal.note("This is no text; --json shows all of it.")


def _argument(entry: str) -> tuple[str, str]:
    name, separator, value = entry.partition("=")
    if not separator or not name:
        raise BadUsage(f"Arguments of a prompt are {_ARGUMENT}, such as language=Python, not {entry[:40]!r}.")
    return name, value


def _row(entry: Mapping[str, object], key: str, kind: str) -> tuple[str, ...]:
    return (_text(entry, key), _text(entry, "title") or _text(entry, "name"), _text(entry, kind), _description(entry))


def _arguments(entry: Mapping[str, object]) -> str:
    """Names; optional ones in brackets."""
    found = entry.get("arguments")
    named = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return " ".join(f"{each['name']}" if each.get("required") is True else f"[{each['name']}]" for each in named)


def _description(entry: Mapping[str, object]) -> str:
    return one_line(_text(entry, "description"), _DESCRIPTION_LIMIT)


def _text(entry: Mapping[str, object], name: str) -> str:
    return str(entry.get(name) or "")
