"""`dragoman run-show`, `run-cancel`, `run-resume`: existing runs."""

import json
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.commands.run import view_for
from interfaces.cli.failures import BadUsage
from interfaces.cli.run_display import EventFields
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import short_json
from interfaces.cli.transcript import show_messages, show_pending, show_run
from interfaces.http.runs.views import CancelledRunsView, RunView, RunWithMessagesView

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id, run_….")]

_EVENT_LIMIT = 120
_SAID_BY_COLUMNS = frozenset({"seq", "type", "run_id", "at"})


def run_show(
    context: typer.Context,
    run_id: RunId,
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
        show_run(session.terminal, waited["run"])
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


def run_cancel(
    *,
    context: typer.Context,
    run_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The run's id, run_….")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Every unfinished run of this agent instead.")
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", metavar="SLUG", help="Every unfinished run that uses this MCP server.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every unfinished run of the organization.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Cancel a run and wait until it has stopped, or cancel all runs of an agent, a server or
    the organization."""
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


def run_resume(
    context: typer.Context,
    run_id: RunId,
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
    """Resume a waiting run with results, answers and approvals, and follow it. Exit codes are
    those of `dragoman run`."""
    session = session_of(context)
    tool_results = [*map(_tool_result, result or ()), *map(_answer, answer or ())]
    decisions = [*_decisions(approve, "approve"), *_decisions(deny, "deny")]
    if not tool_results and not decisions:
        raise BadUsage(
            "Give at least one of --result CALL_ID=TEXT, --answer CALL_ID=ANSWER, --approve CALL_ID or --deny CALL_ID."
        )
    body: JsonObject = {}
    if tool_results:
        body["tool_results"] = [*tool_results]
    if decisions:
        body["approvals"] = [*decisions]

    async def resume(api: ServiceApi) -> int:
        from interfaces.cli.following import follow_to_rest, stopped_by_signals

        view = view_for(session.terminal, as_json=as_json)
        so_far = entries_of(EventFields, await listed(api, path_to("runs", run_id, "events")))
        with stopped_by_signals() as interruption:
            await api.post(path_to("runs", run_id, "resume"), body)
            after = str(so_far[-1].seq) if so_far else None
            ending = await follow_to_rest(api, run_id, view=view, interruption=interruption, after=after)
        view.finish(ending.run)
        if as_json:
            session.terminal.json(ending.document)
        return ending.exit_code

    session.perform(resume, worker=True)


def _decisions(call_ids: list[str] | None, word: str) -> list[JsonValue]:
    return [{"tool_call_id": call_id, "decision": word} for call_id in call_ids or ()]


def _tool_result(entry: str) -> JsonValue:
    call_id, separator, text = entry.partition("=")
    if not separator or not call_id:
        raise BadUsage(f"--result takes CALL_ID=TEXT, not {entry[:40]!r}.")
    return {"tool_call_id": call_id, "result": text}


def _answer(entry: str) -> JsonValue:
    call_id, separator, text = entry.partition("=")
    if not separator or not call_id:
        raise BadUsage(f"--answer takes CALL_ID=ANSWER, not {entry[:40]!r}.")
    if text in ("accept", "decline", "cancel"):
        return {"tool_call_id": call_id, "result": {"action": text}}
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise BadUsage("--answer takes a JSON object with the form's fields, or accept, decline or cancel.")
    return {"tool_call_id": call_id, "result": {"action": "accept", "content": content}}
