"""`dragoman run`: runs."""

from typing import Annotated, cast

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.arguments import AGENTS, RUNS, SERVERS, RunArgument
from interfaces.cli.commands.list_runs import export_runs, list_runs
from interfaces.cli.commands.start_run import start_run
from interfaces.cli.failures import BadUsage
from interfaces.cli.names import names_by_id
from interfaces.cli.pending_calls import elicited_answer, tool_result, with_whole_ids
from interfaces.cli.run_group import RunGroup
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import short_json
from interfaces.cli.transcript import describe_run, show_messages, show_pending
from interfaces.http.runs.views import CancelledRunsView, RunView, RunWithMessagesView

run_app = typer.Typer(
    cls=RunGroup,
    help='Start and manage runs. `dragoman run "MESSAGE"` is short for `dragoman run start "MESSAGE"`.',
    no_args_is_help=True,
    epilog='Examples: dragoman run "What changed last week?" --agent guide; dragoman run list --status requires_action',
)

_EVENT_LIMIT = 120
_SAID_BY_COLUMNS = frozenset({"seq", "type", "run_id", "at"})


run_app.command("start", epilog='Example: dragoman run start "What changed last week?" --agent guide')(start_run)


run_app.command("list", epilog="Example: dragoman run list --agent guide --status requires_action")(list_runs)
run_app.command("export", epilog="Example: dragoman run export --since 7d --format csv --output runs.csv")(export_runs)


@run_app.command("retry", epilog="Example: dragoman run retry run_0123")
def retry_run(context: typer.Context, run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Retry a run. A new run continues a failed run from its last stored step. Any other run is
    repeated: the new run has its agent, input and thread. Exit codes are those of
    `dragoman run`."""
    session = session_of(context)

    async def retry(api: ServiceApi) -> int:
        from interfaces.cli.steering import retried, shown_to_the_end, started, view_for

        run = read_as(RunView, await api.get(path_to("runs", run_id)))
        view = view_for(session.terminal, as_json=as_json)
        if run["status"] == "failed":
            ending = await retried(api, run["id"], view=view)
            return shown_to_the_end(session.terminal, view, ending, as_json=as_json)
        parts: list[JsonValue] = [cast("JsonObject", dict(part)) for part in run["input"]]
        body: JsonObject = {"agent_id": run["agent_id"], "input": parts}
        ending = await started(api, body, thread_id=run["thread_id"], view=view)
        return shown_to_the_end(session.terminal, view, ending, as_json=as_json)

    session.perform(retry, worker=True)


@run_app.command("show", epilog="Example: dragoman run show run_0123 --events")
def show_run(
    context: typer.Context,
    run_id: RunArgument,
    events: Annotated[bool, typer.Option("--events", help="Also list its events.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show a run: its status, usage and messages."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to("runs", run_id, "wait"), {"timeout_s": 0})
        log = await listed(api, path_to("runs", run_id, "events")) if events else None
        if as_json:
            session.terminal.json(document if log is None else {**document, "events": log["data"]})
            return
        waited = read_as(RunWithMessagesView, document)
        names = await names_by_id(api, "agt")
        describe_run(session.terminal, waited["run"], agent=names.get(waited["run"]["agent_id"]))
        session.terminal.line()
        show_messages(session.terminal, waited["messages"])
        if log is not None:
            session.terminal.table(
                ("seq", "time", "event", "data"), [_event_row(event) for event in _objects(log)], empty="No events."
            )
        if waited["run"]["status"] == "requires_action":
            show_pending(session.terminal, waited["run"])

    session.perform(show)


def _objects(page: JsonObject) -> list[JsonObject]:
    data = page["data"]
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


def _event_row(event: JsonObject) -> tuple[str, ...]:
    rest: JsonObject = {name: value for name, value in event.items() if name not in _SAID_BY_COLUMNS}
    return (str(event.get("seq")), str(event.get("at")), str(event.get("type")), short_json(rest, _EVENT_LIMIT))


@run_app.command("cancel", epilog="Examples: dragoman run cancel run_0123; dragoman run cancel --agent guide")
def cancel_run(
    *,
    context: typer.Context,
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The run's id, or its beginning.", autocompletion=RUNS),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", metavar="NAME", help="Every unfinished run of this agent instead.", autocompletion=AGENTS
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="SLUG", help="Every unfinished run that uses this MCP server.", autocompletion=SERVERS
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every unfinished run of the organization.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Cancel a run, or all of an agent, a server or the organization. For one run the command waits
    until it has stopped."""
    target: JsonObject = {}
    if agent is not None:
        target["agent_id"] = agent
    if server is not None:
        target["server"] = server
    if every:
        target["all"] = True
    if len(target) + (run_id is not None) != 1:
        raise BadUsage("Give the ID of a run, or one of --agent NAME, --server SLUG and --all.")
    if run_id is None:
        _cancel_many(context, target, as_json=as_json)
    else:
        _cancel_one(context, run_id, as_json=as_json)


def _cancel_many(context: typer.Context, target: JsonObject, *, as_json: bool) -> None:
    session = session_of(context)

    async def cancel(api: ServiceApi) -> None:
        document = await api.post(path_to("runs", "cancel"), target)
        if as_json:
            session.terminal.json(document)
            return
        done = read_as(CancelledRunsView, document)
        session.terminal.note(f"Cancelled {done['cancelled']} runs; {done['stopping']} more are stopping.")

    session.perform(cancel, worker=True)


def _cancel_one(context: typer.Context, run_id: str, *, as_json: bool) -> None:
    session = session_of(context)

    async def cancel(api: ServiceApi) -> None:
        before = read_as(RunView, await api.get(path_to("runs", run_id)))
        await api.post(path_to("runs", run_id, "cancel"))
        document = await api.get(path_to("runs", run_id, "wait"), {"timeout_s": 15})
        run = read_as(RunWithMessagesView, document)["run"]
        had_ended = before["status"] == run["status"] != "cancelled"
        session.terminal.note(f"{run['id']} {'had already ended' if had_ended else 'is'}: {run['status']}")
        if as_json:
            session.terminal.json(document)

    session.perform(cancel, worker=True)


@run_app.command("resume", epilog='Example: dragoman run resume run_0123 --result call_1="sent"')
def resume_run(
    context: typer.Context,
    run_id: RunArgument,
    *,
    result: Annotated[
        list[str] | None,
        typer.Option("--result", metavar="CALL_ID=TEXT", help="Result of a pending call. Repeatable."),
    ] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar="CALL_ID=ANSWER",
            help="Answer to a request of a call's server: the form's fields as a JSON object, accept, decline or cancel. Repeatable.",
        ),
    ] = None,
    approve: Annotated[
        list[str] | None,
        typer.Option("--approve", metavar="CALL_ID", help="Approve a pending call. Repeatable."),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option("--deny", metavar="CALL_ID", help="Deny a pending call. Repeatable."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Resume a waiting run and follow it. It gets the results, answers and decisions that are
    given. Exit codes are those of `dragoman run`."""
    session = session_of(context)
    tool_results = [*map(tool_result, result or ()), *map(elicited_answer, answer or ())]
    decisions = [*_decisions(approve, "approve"), *_decisions(deny, "deny")]
    if not tool_results and not decisions:
        raise BadUsage(
            "Give at least one of --result CALL_ID=TEXT, --answer CALL_ID=ANSWER, --approve CALL_ID or --deny CALL_ID. "
            f"`dragoman run show {run_id}` shows the calls that wait."
        )
    body: JsonObject = {}
    if tool_results:
        body["tool_results"] = [*tool_results]
    if decisions:
        body["approvals"] = [*decisions]

    async def resume(api: ServiceApi) -> int:
        from interfaces.cli.steering import resumed, shown_to_the_end, view_for

        view = view_for(session.terminal, as_json=as_json)
        run = read_as(RunView, await api.get(path_to("runs", run_id)))
        settled = with_whole_ids(body, [call["id"] for call in run["pending"]])
        ending = await resumed(api, run_id, settled, view=view)
        return shown_to_the_end(session.terminal, view, ending, as_json=as_json)

    session.perform(resume, worker=True)


def _decisions(call_ids: list[str] | None, word: str) -> list[JsonValue]:
    return [{"tool_call_id": call_id, "decision": word} for call_id in call_ids or ()]
