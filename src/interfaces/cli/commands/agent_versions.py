"""`dragoman agent`: switching agents on and off, deleting them, and their versions."""

from dataclasses import fields
from typing import Annotated

import typer

from domain.agents.agent import AgentSettings
from domain.json_value import JsonObject
from interfaces.cli.agent_file import change_agent
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.arguments import AgentArgument
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.agents.views import AgentView


def enable_agent(context: typer.Context, agent: AgentArgument, as_json: JsonFlag = False) -> None:
    """Let an agent be run again."""
    _change(context, agent, {"enabled": True}, "enabled", as_json=as_json)


def disable_agent(context: typer.Context, agent: AgentArgument, as_json: JsonFlag = False) -> None:
    """Reject new runs of an agent. Runs in progress continue; `dragoman run cancel --agent` stops
    them."""
    _change(context, agent, {"enabled": False}, "disabled", as_json=as_json)


def delete_agent(context: typer.Context, agent: AgentArgument) -> None:
    """Delete an agent that has no unfinished run. Its finished runs stay."""
    session_of(context).delete(path_to("agents", agent), f"Deleted {agent}.")


def list_versions(context: typer.Context, agent: AgentArgument, as_json: JsonFlag = False) -> None:
    """List the versions of an agent, newest first."""
    session_of(context).show_list(
        AgentView,
        path_to("agents", agent, "versions"),
        ("version", "saved", "model", "servers", "tools", "enabled"),
        lambda version, _: (
            str(version["version"]),
            version["updated_at"],
            version["model"],
            ", ".join(version["mcp_servers"]),
            ", ".join(version["tools"]),
            "yes" if version["enabled"] else "no",
        ),
        empty=f"{agent} has no versions.",
        as_json=as_json,
    )


def roll_back(
    context: typer.Context,
    agent: AgentArgument,
    to: Annotated[
        int | None, typer.Option("--to", metavar="VERSION", min=1, help="The version. Default: the one before.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Save the settings of an earlier version as the newest one. The name and the canary tokens
    stay."""
    session = session_of(context)

    async def restore(api: ServiceApi) -> None:
        present = await api.get(path_to("agents", agent))
        current = read_as(AgentView, present)
        wanted = current["version"] - 1 if to is None else to
        page = await listed(api, path_to("agents", current["id"], "versions"))
        if wanted not in {entry["version"] for entry in entries_of(AgentView, page)}:
            raise BadUsage(f"{agent} has no version {wanted}; `dragoman agent versions {agent}` lists them.")
        applied = await change_agent(api, present, _settings_of(page, wanted))
        saved = read_as(AgentView, applied.agent)
        session.terminal.note(f"{saved['name']} is as in version {wanted} again, at version {saved['version']}.")
        if as_json:
            session.terminal.json(applied.agent)

    session.perform(restore)


def _settings_of(page: JsonObject, version: int) -> JsonObject:
    names = {field.name for field in fields(AgentSettings)} - {"name", "canary_tokens"}
    data = page["data"]
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    [found] = [entry for entry in entries if entry.get("version") == version]
    return {name: value for name, value in found.items() if name in names}


def _change(context: typer.Context, agent: str, changes: JsonObject, done: str, *, as_json: bool) -> None:
    session = session_of(context)
    session.show(
        AgentView,
        lambda api: api.patch(path_to("agents", agent), changes),
        lambda saved: session.terminal.note(f"{saved['name']} is {done}, at version {saved['version']}."),
        as_json=as_json,
    )
