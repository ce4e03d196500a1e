"""`dragoman workflow run` and related commands: runs of workflows, followed, answered,
cancelled, drawn."""

import json
from dataclasses import dataclass, field
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServerEvent, ServiceApi, path_to
from interfaces.cli.arguments import WorkflowArgument
from interfaces.cli.completion import completed
from interfaces.cli.failures import FAILED, REQUIRES_ACTION, BadUsage, UnexpectedAnswer
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal, short_json
from interfaces.http.workflow_runs.views import PendingView, WorkflowRunOutlineView, WorkflowRunView

RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="The id of a workflow run, or its beginning.", autocompletion=completed("workflow-runs")
    ),
]
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that an agent's run waits for."""

    id: str
    name: str
    params: object = None
    approval_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to a person, or the calls that an agent's run waits for."""

    prompt: str | None = None
    schema: object = None
    url: str | None = None
    calls: list[Call] = field(default_factory=list)


def run_workflow(
    context: typer.Context,
    workflow: WorkflowArgument,
    given: Annotated[str | None, typer.Option("--input", help="The run's input: JSON, otherwise text.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a workflow and follow it. Exit codes: 0 completed, 1 failed or cancelled, 3 waiting
    for an answer or a decision."""
    session = session_of(context)
    body: JsonObject = {} if given is None else {"input": _json_or_text(given)}

    async def followed(api: ServiceApi) -> int:
        started = read_as(WorkflowRunView, await api.post(path_to("workflows", workflow, "runs"), body))
        session.terminal.note(f"Workflow run {started['id']}.")
        return await _follow(api, session.terminal, started["id"], as_json=as_json)

    session.perform(followed, worker=True)


def answer_node(
    context: typer.Context,
    run: RunArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node that waits.")],
    answer: Annotated[str, typer.Argument(metavar="ANSWER", help="JSON, otherwise text.")],
    as_json: JsonFlag = False,
) -> None:
    """Answer a node that waits for a person, and follow the run. Exit codes as for `workflow
    run`."""
    session = session_of(context)
    body: JsonObject = {"answers": [{"node_id": node, "answer": _json_or_text(answer)}]}

    async def answered(api: ServiceApi) -> int:
        seen = await _last_seq(api, run)
        await api.post(path_to("workflow-runs", run, "resume"), body)
        return await _follow(api, session.terminal, run, as_json=as_json, after=seen)

    session.perform(answered, worker=True)


def replay_run(
    context: typer.Context,
    run: RunArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node to begin with.")],
    alone: Annotated[bool, typer.Option("--alone", help="Execute this node and its tools only.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Execute a run again from a node on, as a new run. The nodes before it have the outputs of
    RUN. Exit codes as for `workflow run`."""
    session = session_of(context)
    body: JsonObject = {"node_id": node, "alone": alone}

    async def followed(api: ServiceApi) -> int:
        started = read_as(WorkflowRunView, await api.post(path_to("workflow-runs", run, "replay"), body))
        session.terminal.note(f"Workflow run {started['id']}.")
        return await _follow(api, session.terminal, started["id"], as_json=as_json)

    session.perform(followed, worker=True)


def cancel_run(context: typer.Context, run: RunArgument) -> None:
    """Cancel a workflow run, and the runs of its agents."""
    session = session_of(context)

    async def cancel(api: ServiceApi) -> None:
        stopped = read_as(WorkflowRunView, await api.post(path_to("workflow-runs", run, "cancel")))
        session.terminal.note(f"Workflow run {run}: {stopped['status']}.")

    session.perform(cancel)


def list_runs(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List workflow runs, newest first."""
    session_of(context).show_list(
        WorkflowRunOutlineView,
        path_to("workflow-runs"),
        ("run", "status", "workflow", "created", "version"),
        lambda run, names: (
            run["id"],
            run["status"].replace("_", " "),
            names.get(run["workflow_id"], run["workflow_id"]),
            run["created_at"],
            str(run["workflow_version"]),
        ),
        names=("wfl",),
        empty="No workflow has been run. Run one with `dragoman workflow run NAME`.",
        as_json=as_json,
    )


def show_run(
    context: typer.Context,
    run: RunArgument,
    as_json: JsonFlag = False,
    as_mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print it as a Mermaid flowchart, with nodes coloured by status.")
    ] = False,
) -> None:
    """Show a workflow run: its nodes and their outcomes."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        if as_mermaid:
            async for line in api.lines(path_to("workflow-runs", run, "diagram")):
                session.terminal.line(line)
            return
        document = await api.get(path_to("workflow-runs", run))
        if as_json:
            session.terminal.json(document)
            return
        _show(session.terminal, read_as(WorkflowRunView, document))

    session.perform(show)


async def _follow(api: ServiceApi, terminal: Terminal, run_id: str, *, as_json: bool, after: str | None = None) -> int:
    async for event in api.events(path_to("workflow-runs", run_id, "stream"), after=after):
        if event.type != "end":
            _tell(terminal, event)
    document = await api.get(path_to("workflow-runs", run_id))
    run = read_as(WorkflowRunView, document)
    if as_json:
        terminal.json(document)
    else:
        _show_end(terminal, run)
    return {"completed": 0, "requires_action": REQUIRES_ACTION}.get(run["status"], FAILED)


async def _last_seq(api: ServiceApi, run_id: str) -> str | None:
    """The seq of the last stored event; earlier events are not shown again."""
    last = None
    async for event in api.events(path_to("workflow-runs", run_id, "stream")):
        last = event.id or last
    return last


def _tell(terminal: Terminal, event: ServerEvent) -> None:
    data = json.loads(event.data)
    if not isinstance(data, dict):
        raise UnexpectedAnswer("an event that is no object")
    node, error = data.get("node_id"), data.get("error")
    said = f" {node}" if isinstance(node, str) else ""
    reason = f": {error['detail']}" if isinstance(error, dict) and "detail" in error else ""
    terminal.note(f"{event.type}{said}{reason}")


def _show_end(terminal: Terminal, run: WorkflowRunView) -> None:
    if run["status"] == "completed":
        terminal.line(
            run["output"] if isinstance(run["output"], str) else json.dumps(run["output"], ensure_ascii=False)
        )
        return
    for pending in run["pending"]:
        _tell_pending(terminal, run["id"], pending)
    if run["error"] is not None:
        terminal.note(f"The workflow run failed at {run['failed_node'] or 'its start'}: {run['error']['detail']}")


def _tell_pending(terminal: Terminal, run_id: str, pending: PendingView) -> None:
    asked = read_as(Asked, pending["asked"])
    if pending["run_id"] is None:
        schema = "" if asked.schema is None else f" {_short(asked.schema)}"
        terminal.note(f"{pending['node_id']} asks: {_short(asked.prompt)}{schema}")
        if asked.url is not None:
            terminal.note(f"Connect your account: {asked.url}")
            terminal.note("The run continues by itself then.")
        terminal.note(f"Answer with `dragoman workflow answer {run_id} {pending['node_id']} ANSWER`.")
    for call in asked.calls:
        said = f"{call.name} {_short(call.params)}"
        if call.approval_id is not None:
            terminal.note(f"{pending['node_id']} requires approval: {said}")
            terminal.note(f"Decide with `dragoman approval decide {call.approval_id} --approve`, or --deny.")
        else:
            terminal.note(f"{pending['node_id']} waits for the call {call.id}: {said}")
            terminal.note(f"Settle it with `dragoman run resume {pending['run_id']}`; `--help` says how.")


def _show(terminal: Terminal, run: WorkflowRunView) -> None:
    terminal.fields(
        {
            "run": run["id"],
            "workflow": f"{run['workflow_id']}, version {run['workflow_version']}",
            "status": run["status"],
            "output": "" if run["output"] is None else _short(run["output"]),
            "error": "" if run["error"] is None else f"{run['failed_node'] or ''} {run['error']['detail']}".strip(),
        }
    )
    terminal.table(
        ("node", "status", "attempt", "run", "output or error"),
        [
            (
                node["node_id"],
                node["status"],
                str(node["attempt"]),
                node["run_id"] or "",
                _short(node["output"]) if node["error"] is None else node["error"]["detail"],
            )
            for node in sorted(run["nodes"], key=lambda node: (node["started_at"] is None, node["started_at"] or ""))
        ],
        empty="Nothing has happened yet.",
    )
    for pending in run["pending"]:
        _tell_pending(terminal, run["id"], pending)


def _short(value: object) -> str:
    if isinstance(value, dict):
        return short_json(value, _SHOWN)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _json_or_text(given: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(given, parse_constant=_no_json)
    except ValueError:
        return given
    except RecursionError as exc:
        raise BadUsage("The JSON is nested too deeply.") from exc
    return value


def _no_json(constant: str) -> JsonValue:
    """Python reads NaN and infinities, which JSON does not have."""
    raise ValueError(constant)
