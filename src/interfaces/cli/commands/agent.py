"""`dragoman agent`: agents."""

from pathlib import Path
from typing import Annotated

import typer

from interfaces.cli.agent_file import apply_agent, load_agent_file
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import AgentArgument
from interfaces.cli.commands.agent_versions import (
    delete_agent,
    disable_agent,
    enable_agent,
    list_versions,
    roll_back,
)
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal, short_json
from interfaces.http.agents.views import AgentView, SavedAgentView

agent_app = typer.Typer(help="Manage agents.", no_args_is_help=True, epilog="Example: dragoman agent apply guide.yaml")


@agent_app.command("apply", epilog="Example: dragoman agent apply guide.yaml")
def apply(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML or JSON with at least name and model.")],
    as_json: JsonFlag = False,
) -> None:
    """Create or update the agent of a file. Fields that the file omits return to their defaults."""
    session = session_of(context)
    wanted = load_agent_file(file)

    async def applied(api: ServiceApi) -> None:
        result = await apply_agent(api, wanted)
        agent = read_as(SavedAgentView, result.agent)
        session.terminal.note(f"{agent['name']} ({agent['id']}): {_said(result.done, agent['version'])}.")
        for warning in agent["warnings"]:
            session.terminal.note(f"Warning: {warning}{'' if warning.endswith('?') else '.'}")
        if as_json:
            session.terminal.json(result.agent)

    session.perform(applied, creates=True)


def _said(done: str, version: int) -> str:
    return {
        "created": f"created, version {version}",
        "updated": f"updated to version {version}",
        "unchanged": f"unchanged, version {version}",
    }[done]


@agent_app.command("list", epilog="Example: dragoman agent list --json")
def list_agents(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List agents, newest first."""
    session_of(context).show_list(
        AgentView,
        path_to("agents"),
        ("name", "model", "servers", "tools", "enabled", "version", "id"),
        lambda agent, _: (
            agent["name"],
            agent["model"],
            ", ".join(agent["mcp_servers"]),
            ", ".join(agent["tools"]),
            "yes" if agent["enabled"] else "no",
            str(agent["version"]),
            agent["id"],
        ),
        empty="There are no agents. Create one with `dragoman agent apply FILE`.",
        as_json=as_json,
    )


@agent_app.command("show", epilog="Example: dragoman agent show guide")
def show_agent(
    context: typer.Context,
    agent: AgentArgument,
    as_json: JsonFlag = False,
) -> None:
    """Show an agent at its newest version."""
    session = session_of(context)
    session.show(
        AgentView,
        lambda api: api.get(path_to("agents", agent)),
        lambda answer: _show(session.terminal, answer),
        as_json=as_json,
    )


def _show(terminal: Terminal, agent: AgentView) -> None:
    limits = {name: value for name, value in agent["limits"].items() if value is not None}
    allowlist = agent["tool_allowlist"]
    terminal.fields(
        {
            "name": agent["name"],
            "id": agent["id"],
            "version": f"{agent['version']}, of {agent['updated_at']}",
            "enabled": "yes" if agent["enabled"] else "no",
            "model": agent["model"],
            "fallbacks": ", ".join(agent["fallback_models"]),
            "tools": ", ".join(agent["tools"]),
            "servers": ", ".join(agent["mcp_servers"]),
            "agents": ", ".join(agent["agents"]),
            "description": agent["description"],
            "canaries": ", ".join(token["id"] for token in agent["canary_tokens"]),
            "allowlist": "" if allowlist is None else ", ".join(allowlist) or "nothing",
            "policies": short_json(dict(agent["tool_policies"]), 1_000) if agent["tool_policies"] else "",
            "limits": short_json(limits, 200) if limits else "",
        }
    )
    if agent["instructions"]:
        terminal.line("instructions")
        for line in agent["instructions"].splitlines():
            terminal.line(f"  {line}")


agent_app.command("enable", epilog="Example: dragoman agent enable guide")(enable_agent)
agent_app.command("disable", epilog="Example: dragoman agent disable guide")(disable_agent)
agent_app.command("delete", epilog="Example: dragoman agent delete guide")(delete_agent)
agent_app.command("versions", epilog="Example: dragoman agent versions guide")(list_versions)
agent_app.command("rollback", epilog="Examples: dragoman agent rollback guide; dragoman agent rollback guide --to 3")(
    roll_back
)
