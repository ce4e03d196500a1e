"""`dragoman run list` and `export`: runs that meet conditions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from application.runs.ports import RunOrder
from domain.runs.run import RunStatus
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.arguments import AGENTS, THREADS
from interfaces.cli.asked_times import moment
from interfaces.cli.exports import written
from interfaces.cli.failures import wrong_choice
from interfaces.cli.names import names_by_id
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal, one_line
from interfaces.http.agents.views import AgentView
from interfaces.http.runs.views import RunCountView, RunView

_STATUSES = tuple(status.value for status in RunStatus)
_ORDERS = tuple(order.value for order in RunOrder)
_INPUT_LIMIT = 60

AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Only runs of this agent.", autocompletion=AGENTS)
]
ThreadOption = Annotated[
    str | None, typer.Option("--thread", metavar="ID", help="Only runs on this thread.", autocompletion=THREADS)
]
StatusOption = Annotated[
    str | None, typer.Option("--status", metavar="STATUS", help=f"Only these: {', '.join(_STATUSES)}.")
]
SearchOption = Annotated[
    str | None, typer.Option("--search", metavar="TEXT", help="Only runs with this text in their input or output.")
]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Only runs of this model: PROVIDER:NAME.")
]
ToolOption = Annotated[
    str | None, typer.Option("--tool", metavar="NAME", help="Only runs that called this tool, by its name for models.")
]
ErrorOption = Annotated[str | None, typer.Option("--error", metavar="CODE", help="Only runs with this error code.")]
MetadataOption = Annotated[
    str | None, typer.Option("--metadata", metavar="NAME=VALUE", help="Only runs with this entry in their metadata.")
]
StarterOption = Annotated[
    str | None, typer.Option("--started-by", metavar="ID", help="Only runs of this key, or schedule:ID.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="An RFC 3339 time, or how long ago: 30m, 2h, 7d.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only runs created before this time, as for --since.")
]
OrderOption = Annotated[
    str,
    typer.Option("--order", metavar="ORDER", help=f"{', '.join(_ORDERS)}. The last three: of the newest 10,000 runs."),
]


class _Format(StrEnum):
    NDJSON = "ndjson"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conditions:
    """The filter from the options, which have the API's names; and the order."""

    agent: str | None
    order: str
    others: dict[str, str | None]

    async def query(self, api: ServiceApi) -> dict[str, str | int]:
        """The query of the API; an agent's name becomes its id. Raises BadUsage."""
        for option, given, choices in (("status", self.others["status"], _STATUSES), ("order", self.order, _ORDERS)):
            if given is not None and given not in choices:
                raise wrong_choice(f"--{option}", given, choices)
        now = datetime.now(UTC)
        query: dict[str, str | int] = {name: value for name, value in self.others.items() if value is not None}
        for name in ("since", "until"):
            if name in query:
                query[name] = moment(str(query[name]), now=now, option=f"--{name}")
        if self.agent is not None:
            query["agent_id"] = read_as(AgentView, await api.get(path_to("agents", self.agent)))["id"]
        if self.order != RunOrder.NEWEST:
            query["order"] = self.order
        return query


def list_runs(
    *,
    context: typer.Context,
    agent: AgentOption = None,
    thread_id: ThreadOption = None,
    status: StatusOption = None,
    search: SearchOption = None,
    model: ModelOption = None,
    tool: ToolOption = None,
    error: ErrorOption = None,
    metadata: MetadataOption = None,
    started_by: StarterOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    order: OrderOption = RunOrder.NEWEST.value,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most runs to list.")] = 50,
    count: Annotated[bool, typer.Option("--count", help="Print their number only, counted up to 1,000.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List runs, newest first."""
    session = session_of(context)
    others = {
        "thread_id": thread_id, "status": status, "search": search, "model": model, "tool": tool, "error": error,
        "metadata": metadata, "started_by": started_by, "since": since, "until": until,
    }  # fmt: skip
    conditions = _Conditions(agent=agent, order=order, others=others)

    async def show(api: ServiceApi) -> None:
        query = await conditions.query(api)
        if count:
            await _show_count(session.terminal, api, query, as_json=as_json)
            return
        page = await listed(api, path_to("runs"), query, limit=limit)
        if as_json:
            session.terminal.json(page)
            return
        runs = entries_of(RunView, page)
        names = await names_by_id(api, "agt") if runs else {}
        session.terminal.table(
            ("id", "status", "agent", "created", "input", "thread"),
            [
                (
                    run["id"],
                    run["status"].replace("_", " "),
                    names.get(run["agent_id"], run["agent_id"]),
                    run["created_at"],
                    _input_text(run),
                    run["thread_id"],
                )
                for run in runs
            ],
            empty="There are no such runs." if query else 'There are no runs. Start one with `dragoman run "MESSAGE"`.',
        )
        if page["next_cursor"] is not None:
            which = "newest" if order == RunOrder.NEWEST else "first"
            session.terminal.note(f"These are the {which} {limit}; --limit shows more.")

    session.perform(show)


async def _show_count(terminal: Terminal, api: ServiceApi, query: Mapping[str, str | int], *, as_json: bool) -> None:
    wanted = {name: value for name, value in query.items() if name != "order"}
    document = await api.get(path_to("runs", "count"), wanted)
    found = read_as(RunCountView, document)
    if as_json:
        terminal.json(document)
        return
    terminal.line(str(found["count"]))
    if found["has_more"]:
        terminal.note("There are more.")


def export_runs(
    *,
    context: typer.Context,
    agent: AgentOption = None,
    thread_id: ThreadOption = None,
    status: StatusOption = None,
    search: SearchOption = None,
    model: ModelOption = None,
    tool: ToolOption = None,
    error: ErrorOption = None,
    metadata: MetadataOption = None,
    started_by: StarterOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    order: OrderOption = RunOrder.NEWEST.value,
    format_: Annotated[
        _Format, typer.Option("--format", help="Lines of JSON, or a table for spreadsheets.")
    ] = _Format.NDJSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of the terminal.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As --format ndjson, which is the default.")] = False,
) -> None:
    """Print all runs that meet the conditions. They are lines of JSON, or CSV."""
    session = session_of(context)
    others = {
        "thread_id": thread_id, "status": status, "search": search, "model": model, "tool": tool, "error": error,
        "metadata": metadata, "started_by": started_by, "since": since, "until": until,
    }  # fmt: skip
    conditions = _Conditions(agent=agent, order=order, others=others)

    async def export(api: ServiceApi) -> None:
        chosen = _Format.NDJSON if as_json else format_
        query = {**await conditions.query(api), "format": chosen.value}
        lines = api.lines(path_to("runs", "export"), query)
        if output is None:
            async for line in lines:
                session.terminal.line(line)
            return
        count = await written(lines, output) - (chosen is _Format.CSV)
        session.terminal.note(f"Wrote {count} runs to {output}.")

    session.perform(export)


def _input_text(run: RunView) -> str:
    return one_line(" ".join(str(part["text"]) for part in run["input"] if "text" in part), _INPUT_LIMIT)
