"""`dragoman init`: from an empty data directory to the first answer."""

from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.agent_file import apply_agent
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.failures import ApiProblem, BadUsage
from interfaces.cli.session import Session, session_of
from interfaces.starter_offers import (
    KEYED_PROVIDERS,
    MODELS,
    NO_SERVER,
    SERVERS,
    Offer,
    ServerOffer,
    greeting,
    server_offer,
    starter_agent,
)


def init(
    *,
    context: typer.Context,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER:NAME", help="The model, or `scripted`.")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="NAME", help=f"{', '.join(each.name for each in SERVERS)}, or `none`."),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent's name.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: scripted, none and `guide` unless given.")
    ] = False,
) -> None:
    """Set up a model, an MCP server and an agent, and say hello. What is not given is asked. A
    model's key is prompted for, or read from a pipe; keys in the service's environment are used
    without asking."""
    session = session_of(context)
    wanted_model = model or _chosen(session, "Model", MODELS, ask=not yes)
    wanted_server = _server(
        server or _chosen(session, "MCP server", (*SERVERS, NO_SERVER), ask=not yes, default=NO_SERVER)
    )
    name = agent or (None if yes else session.read_line("Name of the agent [guide]: ")) or "guide"

    async def set_up(api: ServiceApi) -> int:
        from interfaces.cli.steering import shown_to_the_end, started, view_for

        if wanted_server is not None:
            await _register(api, session, wanted_server)
        await _make_agent(api, session, starter_agent(name, wanted_model, wanted_server))
        hello = greeting(wanted_server)
        session.terminal.note(f"{name} is asked: {hello}")
        view = view_for(session.terminal)
        ending = await started(api, {"agent": name, "input": hello}, thread_id=None, view=view)
        code = shown_to_the_end(session.terminal, view, ending, as_json=False)
        session.terminal.note(
            f"Next: `dragoman serve` starts the service with its console, `dragoman chat --agent {name}` talks to it."
        )
        return code

    session.perform(set_up, worker=True, creates=True)


def _chosen(session: Session, what: str, offers: tuple[Offer, ...], *, ask: bool, default: Offer | None = None) -> str:
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


def _server(name: str) -> ServerOffer | None:
    offer = server_offer(name)
    if offer is None and name != NO_SERVER.name:
        raise BadUsage(
            f"There is no {name[:40]!r} in this short list: {', '.join(each.name for each in SERVERS)}, none. "
            "`dragoman mcp add` registers any other server."
        )
    return offer


async def _register(api: ServiceApi, session: Session, server: ServerOffer) -> None:
    """Register and install the server, unless it is there."""
    from interfaces.cli.installing import installed

    try:
        await api.post(path_to("mcp-servers"), server.body())
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
        if "has no API key" not in problem.message or provider not in KEYED_PROVIDERS:
            raise
        key = session.read_secret(f"API key of {provider} (not shown): ").strip()
        if not key:
            raise BadUsage(f"No key of {provider} was given. `dragoman init --model scripted` needs none.") from problem
        body: JsonObject = {"name": provider, "kind": provider, "api_key": key}
        await api.post(path_to("model-providers"), body)
        applied = await apply_agent(api, agent)
    session.terminal.note(f"Agent {agent['name']} {applied.done}, with the model {agent['model']}.")
