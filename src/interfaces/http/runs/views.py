"""Runs and their events as JSON."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict, cast

from domain.identity.role import Role
from domain.json_value import JsonObject
from domain.runs.events import RunEvent
from domain.runs.limits import IncompleteReason
from domain.runs.run import Run, RunStatus
from domain.runs.run_json import run_to_json
from domain.threads.message_json import timestamp
from interfaces.http.threads.views import MessageView


class ProviderErrorView(TypedDict):
    """What the model provider said: the HTTP status, its code or type, its message. Without secrets, cut at 2 KiB."""

    status: int | None
    code: str | None
    message: str


class RunErrorView(TypedDict):
    """Why a run failed. `provider_error` is there for operators and admins, where the model provider said something."""

    code: str
    detail: str
    provider_error: NotRequired[ProviderErrorView]


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


def run_view(run: Run, role: Role) -> RunView:
    """A run as JSON, for a reader with this role."""
    view = cast(RunView, run_to_json(run))
    said = None if run.error is None else run.error.provider_error
    if said is not None and view["error"] is not None and role.includes(Role.OPERATOR):
        view["error"]["provider_error"] = cast(ProviderErrorView, said.to_json())
    return view


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
