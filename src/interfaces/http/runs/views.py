"""Runs and their events as JSON."""

from collections.abc import Mapping
from typing import Annotated, NotRequired, TypedDict, cast

from application.system.pages import Page
from domain.identity.role import Role
from domain.json_value import JsonObject
from domain.runs.events import RunEvent
from domain.runs.lane import Lane
from domain.runs.limits import IncompleteReason
from domain.runs.run import Run, RunStatus
from domain.runs.run_json import run_to_json
from domain.threads.attachments import without_bytes
from domain.threads.message_json import timestamp
from interfaces.http.runs.event_views import RunEventView
from interfaces.http.threads.content_views import InputPartView, ToolUseView
from interfaces.http.threads.views import MessageView
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Timestamp


class ProviderErrorView(TypedDict):
    """The model provider's error: HTTP status, code or type, and message, without secrets, cut
    at 2 KiB."""

    status: Annotated[int | None, "HTTP status; null if there was none."]
    code: Annotated[str | None, "Code or type of the error; null if there was none."]
    message: Annotated[str, "Message, without secrets, at most 2 KiB."]


class RunErrorView(TypedDict):
    """Why a run failed. `provider_error` is shown to operators and admins, if the model provider
    sent one."""

    code: Annotated[str, "Code of the error."]
    detail: Annotated[str, "The error as a sentence."]
    provider_error: NotRequired[
        Annotated[ProviderErrorView, "The model provider's error, if it sent one. Shown to operators and admins."]
    ]


class RunUsageView(TypedDict):
    """Consumption of a run."""

    input_tokens: Annotated[int, "Input tokens, cached ones included."]
    output_tokens: Annotated[int, "Output tokens, those of reasoning included."]
    cached_tokens: Annotated[int, "Input tokens that the provider had cached."]
    reasoning_tokens: Annotated[int, "Output tokens that the model spent on reasoning."]
    cost_usd: Annotated[float, "Cost in USD of the calls with a known price."]
    turns: Annotated[int, "Number of model calls."]
    tool_calls: Annotated[int, "Number of executed tool calls."]
    estimated: Annotated[bool, "Whether a provider reported no tokens, or a call was interrupted."]


class RunView(TypedDict):
    """A run. `pending` are the tool calls that it waits for in `requires_action`.
    `incomplete_reason` is the limit reached, or why the model's last reply was not a complete
    answer."""

    id: Annotated[str, "Id of the run."]
    thread_id: Annotated[str, "Id of its thread."]
    agent_id: Annotated[str, "Id of its agent."]
    agent_version: Annotated[int, "Version of its agent."]
    status: Annotated[RunStatus, "Status of the run."]
    lane: Annotated[Lane, "Its lane among waiting runs."]
    model: Annotated[str, "The model, as `PROVIDER:NAME`."]
    input: Annotated[list[InputPartView], "Input of the run."]
    output_schema: Annotated[Mapping[str, object] | None, "Its own output schema; null for that of its agent."]
    output: Annotated[str | None, "Text of the last reply; null if there is none."]
    output_json: Annotated[
        Mapping[str, object] | None,
        "The object in the output that matches the output schema; null without a schema, or if none matches.",
    ]
    error: Annotated[RunErrorView | None, "Why it failed; null if it did not."]
    incomplete_reason: Annotated[
        IncompleteReason | None,
        "The limit that it reached, or why the last reply is incomplete; null unless it ended `incomplete`.",
    ]
    pending: Annotated[list[ToolUseView], "Tool calls that it waits for in `requires_action`."]
    usage: Annotated[RunUsageView, "Consumption of the run."]
    attempt: Annotated[int, "Counts the workers that executed it."]
    created_at: CreatedAt
    started_at: Annotated[Timestamp | None, "Time of its start; null until then."]
    finished_at: Annotated[Timestamp | None, "Time of its end; null until then."]
    metadata: Annotated[Mapping[str, object], "Data of the client; Dragoman does not use it."]
    started_by: Annotated[
        str | None,
        "Who started it: the id of an API key (of the workflow run or gateway session, where one of these did), or "
        "`schedule:` and the id of a schedule.",
    ]
    retry_of: Annotated[str | None, "The failed run that it continues; null if it is no retry."]


class RunWithMessagesView(TypedDict):
    """A run and the messages it wrote."""

    run: Annotated[RunView, "The run."]
    messages: Annotated[list[MessageView], "Messages that it wrote, oldest first."]


class EventsView(TypedDict):
    """Events in order."""

    data: Annotated[list[RunEventView], "Events in order."]
    next_cursor: Annotated[
        str | None, "Number of the last event, to continue after; null if there are no further events yet."
    ]


class RunPage(TypedDict):
    """A page of runs; `next_cursor` is null on the last one."""

    data: Items[RunView]
    next_cursor: NextCursor


class RunCountView(TypedDict):
    """A number of runs, counted up to 1,000."""

    count: Annotated[int, "Number of runs, at most 1,000."]
    has_more: Annotated[bool, "Whether there are more than 1,000."]


class CancelledRunsView(TypedDict):
    """Numbers of runs that ended cancelled, and of runs in progress whose cancellation was
    requested."""

    cancelled: Annotated[int, "Number of runs that ended cancelled."]
    stopping: Annotated[int, "Number of runs in progress whose cancellation was requested."]


def run_view(run: Run, role: Role) -> RunView:
    """A run as JSON, for a reader with this role."""
    view = cast(RunView, run_to_json(run))
    said = None if run.error is None else run.error.provider_error
    if said is not None and view["error"] is not None and role.includes(Role.OPERATOR):
        view["error"]["provider_error"] = cast(ProviderErrorView, said.to_json())
    return view


def listed_run_view(run: Run, role: Role) -> RunView:
    """As `run_view`, with the sizes of images and files in place of their bytes."""
    view = run_view(run, role)
    view["input"] = [without_bytes(cast(JsonObject, part)) for part in view["input"]]
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


def events_view(page: Page[RunEvent]) -> EventsView:
    return {"data": [event_json(event) for event in page.items], "next_cursor": page.next_cursor}
