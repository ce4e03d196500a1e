"""`dragoman tool`: available tools and their effective policy."""

from typing import Annotated

import typer

from application.tools.tool_standing import ToolStanding
from interfaces.cli.answers import entries_of
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import AGENTS
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal, one_line, short_json
from interfaces.http.tools.views import ExplanationView, LayerView, ToolView

_DESCRIPTION_LIMIT = 80
_RULE_LIMIT = 200

tool_app = typer.Typer(
    help="List and explain tools.", no_args_is_help=True, epilog="Example: dragoman tool list --agent guide"
)


@tool_app.callback()
def _tools() -> None:
    """List and explain tools."""


@tool_app.command("list", epilog="Example: dragoman tool list --agent guide")
def list_tools(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", metavar="NAME", help="Only the tools of this agent, by id or name.", autocompletion=AGENTS
        ),
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
                    tool["name"],
                    tool["type"],
                    tool["server"] or "",
                    tool["health"] or "",
                    one_line(tool["description"], _DESCRIPTION_LIMIT),
                )
                for tool in entries_of(ToolView, page)
            ],
            empty="There are no tools. Register an MCP server with `dragoman mcp add`.",
        )

    session.perform(show)


@tool_app.command("explain", epilog="Example: dragoman tool explain mcp__git__git_commit --agent guide")
def explain_tool(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool, as models call it.")],
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The agent, by id or name.", autocompletion=AGENTS)
    ],
    person: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="ID",
            help="Who acts: id of a user or an API key. Others than you: needs groups.manage. Default: you.",
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When, such as 2026-11-27T19:00:00+01:00. Default: now.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Explain the policy of an agent's tool. It is allowed, requires approval, is denied or
    hidden."""
    session = session_of(context)
    asked = {"agent": agent} | {key: said for key, said in (("person", person), ("at", at)) if said is not None}
    session.show(
        ExplanationView,
        lambda api: api.get(path_to("tools", name, "explain"), asked),
        lambda answer: _show(session.terminal, answer),
        as_json=as_json,
    )


def _show(terminal: Terminal, tool: ExplanationView) -> None:
    terminal.line(
        f"{tool['name']}, for {tool['agent']} (version {tool['agent_version']}): {ToolStanding(tool['standing']).words}"
    )
    for reason in tool["reasons"]:
        terminal.line(f"  {reason}")
    terminal.table(
        ("layer", "allowlist", "rule", "says"),
        [row for layer in tool["layers"] for row in _rows(layer)],
        empty="No layer says anything.",
    )


def _rows(layer: LayerView) -> list[tuple[str, str, str, str]]:
    allowlist = {None: "none", True: "has it", False: "lacks it"}[layer["in_allowlist"]]
    rules = [(pattern, short_json(rule, _RULE_LIMIT)) for pattern, rule in layer["rules"].items()] or [("none", "")]
    return [(layer["layer"], allowlist, pattern, said) for pattern, said in rules]
