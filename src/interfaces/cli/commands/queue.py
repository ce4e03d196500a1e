"""`dragoman queue`: what waits for workers."""

from typing import Annotated

import typer

from domain.json_value import JsonObject
from domain.runs.lane import Lane
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import AgentOption
from interfaces.cli.failures import BadUsage, wrong_choice
from interfaces.cli.names import names_by_id
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.queue.views import QueueView, RequeuedRunsView
from interfaces.http.runs.views import CancelledRunsView

queue_app = typer.Typer(
    help="Read the queue, cancel runs in it, requeue stuck ones.",
    no_args_is_help=True,
    epilog="Examples: dragoman queue show; dragoman queue cancel --lane batch",
)

_LANES = tuple(lane.value for lane in Lane)


@queue_app.command("show", epilog="Example: dragoman queue show")
def show_queue(
    context: typer.Context,
    *,
    every: Annotated[bool, typer.Option("--all", help="Of all organizations. Requires a platform key.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show queued runs and runs in progress by agent and lane."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to("queue"), {"all": True} if every else None)
        if as_json:
            session.terminal.json(document)
            return
        queue = read_as(QueueView, document)
        names = await names_by_id(api, "agt") if queue["lines"] else {}
        owner = ("organization",) if every else ()
        session.terminal.table(
            (*owner, "agent", "lane", "queued", "running", "oldest"),
            [
                (
                    *((line["organization_id"],) if every else ()),
                    names.get(line["agent_id"], line["agent_id"]),
                    line["lane"],
                    str(line["queued"]),
                    str(line["running"]),
                    line["oldest_queued_at"] or "",
                )
                for line in queue["lines"]
            ],
            empty="No run is queued or in progress.",
        )

    session.perform(show)


@queue_app.command("cancel", epilog="Example: dragoman queue cancel --lane batch --agent report")
def cancel_queued(
    *,
    context: typer.Context,
    agent: AgentOption = None,
    lane: Annotated[
        str | None, typer.Option("--lane", metavar="LANE", help=f"Only runs in this lane: {', '.join(_LANES)}.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every queued run of the organization.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Cancel queued runs of an agent, a lane or the organization."""
    if agent is None and lane is None and not every:
        raise BadUsage("Say which runs: --agent, --lane or --all.")
    if lane is not None and lane not in _LANES:
        raise wrong_choice("--lane", lane, _LANES)
    session = session_of(context)

    async def cancel(api: ServiceApi) -> None:
        target: JsonObject = {"all": True} if agent is None else {"agent_id": agent}
        narrowed: JsonObject = {"queued": True} if lane is None else {"queued": True, "lane": lane}
        document = await api.post(path_to("runs", "cancel"), {**target, **narrowed})
        if as_json:
            session.terminal.json(document)
            return
        done = read_as(CancelledRunsView, document)
        session.terminal.note(f"Cancelled {done['cancelled']} runs; {done['stopping']} had begun and are stopping.")

    session.perform(cancel)


@queue_app.command("requeue", epilog="Example: dragoman queue requeue --idle 900")
def requeue_runs(
    *,
    context: typer.Context,
    idle_s: Annotated[
        float,
        typer.Option(
            "--idle",
            metavar="SECONDS",
            min=60,
            help="Only runs without an event for so long; longer than your longest tool calls.",
        ),
    ] = 900,
    agent: AgentOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let other workers continue runs that no longer progress."""
    session = session_of(context)

    async def requeue(api: ServiceApi) -> None:
        wanted: JsonObject = {"idle_s": idle_s} if agent is None else {"idle_s": idle_s, "agent_id": agent}
        document = await api.post(path_to("queue", "requeue"), wanted)
        if as_json:
            session.terminal.json(document)
            return
        run_ids = read_as(RequeuedRunsView, document)["run_ids"]
        for run_id in run_ids:
            session.terminal.note(f"{run_id} is queued again.")
        if not run_ids:
            session.terminal.note(f"No run in progress has been without an event for {idle_s:g} s.")

    session.perform(requeue, worker=True)
