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
    """The model provider's error: HTTP status, code or type, and message, without secrets, cut
    at 2 KiB."""

    status: int | None
    code: str | None
    message: str


class RunErrorView(TypedDict):
    """Why a run failed. `provider_error` is shown to operators and admins, if the model provider
    sent one."""

    code: str
    detail: str
    provider_error: NotRequired[ProviderErrorView]


class RunUsageView(TypedDict):
    """Consumption of a run; `cost_usd` covers calls with a known price. `input_tokens` includes `cached_tokens`,
    `output_tokens` includes `reasoning_tokens`. `estimated`: a provider reported no tokens, or a call was interrupted."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float
    turns: int
    tool_calls: int
    estimated: bool


class RunView(TypedDict):
    """A run. `pending` are the tool calls that it waits for in `requires_action`.
    `incomplete_reason` is the limit reached, or why the model's last reply was not a complete
    answer."""

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
    """Numbers of runs that ended cancelled, and of runs in progress whose cancellation was
    requested."""

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
    """A page of events; after a full page there may be more."""
    return {
        "data": [event_json(event) for event in events],
        "next_cursor": str(events[-1].seq) if events and full else None,
    }
