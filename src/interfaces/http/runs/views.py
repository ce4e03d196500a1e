"""Runs and their events as JSON."""

from collections.abc import Mapping
from typing import TypedDict, cast

from domain.json_value import JsonObject
from domain.runs.events import RunEvent
from domain.runs.limits import IncompleteReason
from domain.runs.run import Run, RunStatus
from domain.runs.run_json import run_to_json
from domain.threads.message_json import timestamp
from interfaces.http.threads.views import MessageView


class RunErrorView(TypedDict):
    """Why a run failed."""

    code: str
    detail: str


class RunUsageView(TypedDict):
    """What a run has consumed; `cost_usd` counts what could be priced."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float
    turns: int
    tool_calls: int


class RunView(TypedDict):
    """A run. `pending` are the tool calls it waits for in `requires_action`; `incomplete_reason` says why an `incomplete` one
    is: a limit of the run, or what made the model's last reply less than a whole answer."""

    id: str
    thread_id: str
    agent_id: str
    agent_version: int
    status: RunStatus
    model: str
    input: list[Mapping[str, object]]
    output: str | None
    error: RunErrorView | None
    incomplete_reason: IncompleteReason | None
    pending: list[Mapping[str, object]]
    usage: RunUsageView
    attempt: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    metadata: Mapping[str, object]


class RunWithMessagesView(TypedDict):
    """A run and the messages it wrote."""

    run: RunView
    messages: list[MessageView]


class EventsView(TypedDict):
    """Events in order."""

    data: list[Mapping[str, object]]
    next_cursor: str | None


class RunPage(TypedDict):
    """A page of runs; `next_cursor` is null on the last one."""

    data: list[RunView]
    next_cursor: str | None


class CancelledRunsView(TypedDict):
    """How many runs have ended cancelled, and how many in progress were asked to stop."""

    cancelled: int
    stopping: int


def run_view(run: Run) -> RunView:
    """A run as JSON."""
    return cast(RunView, run_to_json(run))


def event_json(event: RunEvent) -> JsonObject:
    """An event as JSON: `seq`, `type`, `run_id`, `at`, and the fields of its type."""
    return {
        "seq": event.seq,
        "type": event.type.value,
        "run_id": event.run_id,
        "at": timestamp(event.at),
        **event.data,
    }


def events_view(events: tuple[RunEvent, ...], *, full: bool) -> EventsView:
    """A page of events; a full one has perhaps more after it."""
    return {
        "data": [event_json(event) for event in events],
        "next_cursor": str(events[-1].seq) if events and full else None,
    }
