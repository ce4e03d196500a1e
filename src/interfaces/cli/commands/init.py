"""`dragoman init`: from an empty data directory to the first answer."""

from dataclasses import dataclass
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.agent_file import apply_agent
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.failures import ApiProblem, BadUsage
from interfaces.cli.session import Session, session_of

_INSTRUCTIONS = "Answer the user. Use your tools where they help."
_SCRIPTED = "scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """A choice of the wizard. `says` describes it."""

    name: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server(_Offer):
    kind: str
    package: str
    args: tuple[str, ...] = ()
    greeting: str = "Hello! Which tools do you have?"


_MODELS = (
    _Offer(name=_SCRIPTED, says="a script for trying out, without a key"),
    _Offer(name="openai:gpt-5-mini", says="OpenAI; needs a key"),
    _Offer(name="anthropic:claude-haiku-4-5", says="Anthropic; needs a key"),
)
_SERVERS = (
    _Server(
        name="time",
        says="the time in any time zone",
        kind="python",
        package="mcp-server-time",
        greeting="What time is it in Lisbon?",
    ),
    _Server(name="fetch", says="reads web pages", kind="python", package="mcp-server-fetch"),
    _Server(name="git", says="reads Git repositories", kind="python", package="mcp-server-git"),
    _Server(
        name="memory",
        says="notes as a graph; needs Node.js",
        kind="npm",
        package="@modelcontextprotocol/server-memory",
    ),
)
_NONE = _Offer(name="none", says="no tools for now")


def init(
    *,
    context: typer.Context,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER:NAME", help="The model, or `scripted`.")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="NAME", help=f"{', '.join(each.name for each in _SERVERS)}, or `none`."),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent's name.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: scripted, none and `guide` unless given.")
    ] = False,
) -> None:
    """Set up a model, an MCP server and an agent, and say hello. What is not given is asked. A model's key is prompted
    for, or read from a pipe; keys in the service's environment are used without asking."""
    session = session_of(context)
    wanted_model = model or _chosen(session, "Model", _MODELS, ask=not yes)
    wanted_server = _server(server or _chosen(session, "MCP server", (*_SERVERS, _NONE), ask=not yes, default=_NONE))
    name = agent or (None if yes else session.read_line("Name of the agent [guide]: ")) or "guide"

    async def set_up(api: ServiceApi) -> int:
        from interfaces.cli.steering import shown_to_the_end, started, view_for

        if wanted_server is not None:
            await _register(api, session, wanted_server)
        await _make_agent(api, session, _agent(name, wanted_model, wanted_server))
        greeting = "Hello!" if wanted_server is None else wanted_server.greeting
        session.terminal.note(f"{name} is asked: {greeting}")
        view = view_for(session.terminal)
        ending = await started(api, {"agent": name, "input": greeting}, thread_id=None, view=view)
        code = shown_to_the_end(session.terminal, view, ending, as_json=False)
        session.terminal.note(
            f"Next: `dragoman serve` starts the service with its console, `dragoman chat --agent {name}` talks to it."
        )
        return code

    session.perform(set_up, worker=True, creates=True)


def _chosen(
    session: Session, what: str, offers: tuple[_Offer, ...], *, ask: bool, default: _Offer | None = None
) -> str:
    """The name of an offer, or what the person types instead."""
    first = default or offers[0]
    if not ask:
        return first.name
    session.terminal.note(f"{what}:")
    for number, offer in enumerate(offers, start=1):
        session.terminal.note(f"  {number}  {offer.name:<28}{offer.says}")
    said = session.read_line(f"Number or name [{first.name}]: ")
    if said is None:
        raise BadUsage("Nothing was chosen. `dragoman init --yes` asks nothing.")
    text = said.strip() or first.name
    return offers[int(text) - 1].name if text.isdecimal() and 0 < int(text) <= len(offers) else text


def _server(name: str) -> _Server | None:
    if name == _NONE.name:
        return None
    for offer in _SERVERS:
        if offer.name == name:
            return offer
    raise BadUsage(
        f"There is no {name[:40]!r} in this short list: {', '.join(each.name for each in _SERVERS)}, none. "
        "`dragoman mcp add` registers any other server."
    )


def _agent(name: str, model: str, server: _Server | None) -> JsonObject:
    script = "scripted:time.yaml" if server is not None and server.name == "time" else "scripted:hello.yaml"
    slugs: list[JsonValue] = [] if server is None else [server.name]
    return {
        "name": name,
        "model": script if model == _SCRIPTED else model,
        "instructions": _INSTRUCTIONS,
        "mcp_servers": slugs,
    }


async def _register(api: ServiceApi, session: Session, server: _Server) -> None:
    """Register and install the server, unless it is there."""
    from interfaces.cli.installing import installed

    args: list[JsonValue] = [*server.args]
    body: JsonObject = {"slug": server.name, "kind": server.kind, "package": server.package, "args": args}
    try:
        await api.post(path_to("mcp-servers"), body)
    except ApiProblem as problem:
        if problem.status != 409:
            raise
        session.terminal.note(f"The MCP server {server.name} is there already.")
        return
    await installed(api, session.terminal, server.name)


async def _make_agent(api: ServiceApi, session: Session, agent: JsonObject) -> None:
    """Save the agent. A model whose provider has no key gets one first."""
    try:
        applied = await apply_agent(api, agent)
    except ApiProblem as problem:
        provider = str(agent["model"]).partition(":")[0]
        if "has no API key" not in problem.message or provider not in ("openai", "anthropic"):
            raise
        key = session.read_secret(f"API key of {provider} (not shown): ").strip()
        if not key:
            raise BadUsage(f"No key of {provider} was given. `dragoman init --model scripted` needs none.") from problem
        body: JsonObject = {"name": provider, "kind": provider, "api_key": key}
        await api.post(path_to("model-providers"), body)
        applied = await apply_agent(api, agent)
    session.terminal.note(f"Agent {agent['name']} {applied.done}, with the model {agent['model']}.")
