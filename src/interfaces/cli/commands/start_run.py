"""`dragoman run start`, or `run` with a message: one run in the terminal."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from domain.runs.limits import LimitSettings
from interfaces.cli.agent_file import AppliedAgent, apply_agent, change_agent, is_agent_file, load_agent_file
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import (
    AGENTS,
    SERVERS,
    THREADS,
    LaneOption,
    MetadataOption,
    OutputSchemaOption,
    SettingsOption,
)
from interfaces.cli.attaching import input_with
from interfaces.cli.definition_file import load_object
from interfaces.cli.failures import ApiProblem, BadUsage
from interfaces.cli.field_values import field_values, model_settings
from interfaces.cli.run_group import require_message
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal
from interfaces.http.agents.views import AgentView

DEFAULT_AGENT = "cli"
_LIMITS = tuple(field.name for field in fields(LimitSettings))
_INSTRUCTIONS = "Answer the user. Use your tools where they help."


def start_run(
    context: typer.Context,
    *,
    text: Annotated[str, typer.Argument(metavar="INPUT", help="The message to the agent.")],
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME|FILE",
            help="An agent's name or id, or a .yaml or .json file that is applied first.",
            autocompletion=AGENTS,
        ),
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="NAME",
            help="Without --agent: an MCP server to use. Repeatable.",
            autocompletion=SERVERS,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="PROVIDER:NAME", help="The model; with --agent one of the agent's models."),
    ] = None,
    thread_id: Annotated[
        str | None,
        typer.Option(
            "--thread", metavar="ID", help="Continue this thread instead of a new one.", autocompletion=THREADS
        ),
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option(
            "--attach",
            "--file",
            metavar="FILE",
            help="An image, PDF, audio or text file for the model. Repeatable; 7 MiB in sum.",
        ),
    ] = None,
    output_schema: OutputSchemaOption = None,
    lane: LaneOption = None,
    settings: SettingsOption = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="NAME=VALUE", help="A limit that narrows the agent's, such as max_turns=3. Repeatable."
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="NAME", help="Only this tool of the agent, or a glob. Repeatable."),
    ] = None,
    metadata: MetadataOption = None,
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="URL", help="Webhook URL for the end of the run.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Start a run and show its progress. `dragoman run INPUT` is short for it. Without --agent, an
    agent named cli is created from --model and --server, and stored for later. The exit code is 0
    for a completed run, 3 if it requires action, 130 if Ctrl-C cancelled it, else 1."""
    session = session_of(context)
    require_message(context, text)
    if agent is not None and server:
        raise BadUsage("--server cannot be combined with --agent; list servers in the agent's mcp_servers.")
    message = input_with(text, attach or [])
    wanted = load_agent_file(Path(agent)) if agent is not None and is_agent_file(agent) else None
    given: dict[str, JsonValue] = {
        "webhook": webhook,
        "lane": lane,
        "output_schema": None if output_schema is None else load_object(output_schema),
        "model_settings": model_settings(settings or ()) or None,
        "limits": field_values(limit or (), texts=(), fields=_LIMITS) or None,
        "tool_allowlist": [*(tool or ())] or None,
        "metadata": field_values(metadata or (), texts=()) or None,
    }
    options: JsonObject = {name: value for name, value in given.items() if value is not None}

    async def perform(api: ServiceApi) -> int:
        from interfaces.cli.steering import shown_to_the_end, started, view_for

        name = agent or DEFAULT_AGENT
        if wanted is not None:
            name = _say_applied(session.terminal, await apply_agent(api, wanted))
        elif agent is None:
            name = _say_applied(session.terminal, await default_agent(api, model, server or []))
        body: JsonObject = {"agent_id" if name.startswith("agt_") else "agent": name, "input": message, **options}
        if agent is not None and model is not None:
            body["model"] = model
        view = view_for(session.terminal, as_json=as_json)
        ending = await started(api, body, thread_id=thread_id, view=view)
        return shown_to_the_end(session.terminal, view, ending, as_json=as_json)

    # An agent that is only named is nowhere in a data directory that does not exist.
    session.perform(perform, worker=True, creates=agent is None or wanted is not None)


async def default_agent(api: ServiceApi, model: str | None, servers: list[str]) -> AppliedAgent:
    """The agent `cli` with this model and these servers; its other settings stay."""
    slugs: list[JsonValue] = [*servers]
    changes: JsonObject = {"mcp_servers": slugs, **({} if model is None else {"model": model})}
    try:
        present = await api.get(path_to("agents", DEFAULT_AGENT))
    except ApiProblem as problem:
        if problem.status != 404:
            raise
        if model is None:
            raise BadUsage(
                "Give --model PROVIDER:NAME (openai:…, anthropic:…, scripted:PATH.yaml), or --agent NAME."
            ) from problem
        created = await api.post(path_to("agents"), {"name": DEFAULT_AGENT, "instructions": _INSTRUCTIONS, **changes})
        return AppliedAgent(agent=created, done="created")
    return await change_agent(api, present, changes)


def _say_applied(terminal: Terminal, applied: AppliedAgent) -> str:
    agent = read_as(AgentView, applied.agent)
    servers = ", ".join(agent["mcp_servers"]) or "none"
    terminal.note(
        f"Agent {agent['name']} {applied.done}: version {agent['version']}, {agent['model']}, MCP servers: {servers}"
    )
    return agent["id"]
