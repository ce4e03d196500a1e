"""The events of runs as JSON: one shape for each type, and `end`, the last item of a stream."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict

from domain.policy.decision import DecisionReason
from domain.policy.layers import PolicyLayer
from domain.policy.rules import Verdict
from domain.runs.limits import IncompleteReason
from domain.runs.run import RunStatus
from interfaces.http.threads.content_views import ToolUseView
from interfaces.http.threads.views import MessageView
from interfaces.http.view_fields import OneOf, Timestamp

_TYPE = "Type of the event."
_CALL = "Id of the tool call."
_TOOL = "Name of the tool as models see it."
_MESSAGE = "Id of the message."


class ErrorView(TypedDict):
    """An error of a run or of a tool call."""

    code: Annotated[str, "Code of the error."]
    detail: Annotated[str, "The error as a sentence, or the text that the model gets."]


class CallUsageView(TypedDict):
    """Consumption of one model call."""

    model: Annotated[str, "The model, as `PROVIDER:NAME`."]
    input_tokens: Annotated[int, "Input tokens, cached ones included."]
    output_tokens: Annotated[int, "Output tokens, those of reasoning included."]
    cached_tokens: Annotated[int, "Input tokens that the provider had cached."]
    reasoning_tokens: Annotated[int, "Output tokens that the model spent on reasoning."]
    cost_usd: Annotated[float | None, "Cost in USD; null without a known price."]
    estimated: Annotated[
        bool, "Whether the tokens are estimated: the provider reported none, or the call was interrupted."
    ]


class PolicyDecisionView(TypedDict):
    """What policy decided about a tool call."""

    verdict: Annotated[Verdict, "The decision."]
    reason: Annotated[DecisionReason, "Why it was decided so."]
    layer: Annotated[PolicyLayer, "Layer of the rule that decided."]
    pattern: Annotated[str | None, "Pattern of that rule; null if no rule decided."]


class EventView(TypedDict):
    """Fields of every event."""

    seq: Annotated[int, "Number of the event in its run: from 1, without gaps."]
    run_id: Annotated[str, "Id of the run."]
    at: Annotated[Timestamp, "Time of the event."]


class RunQueuedEvent(EventView):
    """The run waits for a worker."""

    type: Annotated[Literal["run.queued"], _TYPE]
    thread_id: Annotated[str, "Id of the thread."]
    agent_id: Annotated[str, "Id of the agent."]


class RunStartedEvent(EventView):
    """A worker has claimed the run."""

    type: Annotated[Literal["run.started"], _TYPE]
    attempt: Annotated[int, "Counts the claims, from 1."]
    agent_version: Annotated[int, "Version of the agent."]


class TurnStartedEvent(EventView):
    """A turn begins."""

    type: Annotated[Literal["turn.started"], _TYPE]
    turn: Annotated[int, "Counts the turns, from 1."]


class MessageDeltaEvent(EventView):
    """A piece of the model's text."""

    type: Annotated[Literal["message.delta"], _TYPE]
    message_id: Annotated[str, _MESSAGE]
    text: Annotated[str, "The piece."]


class ReasoningDeltaEvent(EventView):
    """A piece of the reasoning that the model shows before or beside the text of a message, of
    agents with `reasoning_summary`. It is in no message."""

    type: Annotated[Literal["reasoning.delta"], _TYPE]
    message_id: Annotated[str, _MESSAGE]
    text: Annotated[str, "The piece."]


class MessageCompletedEvent(EventView):
    """A message is in the thread."""

    type: Annotated[Literal["message.completed"], _TYPE]
    message: Annotated[MessageView, "The message."]
    usage: NotRequired[Annotated[CallUsageView, "Consumption of the model call that wrote it."]]


class MessageDiscardedEvent(EventView):
    """The streamed part of a message is discarded: the message will not be completed."""

    type: Annotated[Literal["message.discarded"], _TYPE]
    message_id: Annotated[str, _MESSAGE]
    reason: Annotated[str, "Why it is discarded."]
    usage: NotRequired[Annotated[CallUsageView, "Estimated consumption of the model call."]]


class ModelRetryingEvent(EventView):
    """The model is called again, or the next one is."""

    type: Annotated[Literal["model.retrying"], _TYPE]
    model: Annotated[str, "The model that is called next, as `PROVIDER:NAME`."]
    attempt: Annotated[int, "Number of the next attempt."]
    wait_s: Annotated[float, "Seconds until then."]


class ToolStartedEvent(EventView):
    """A tool call is recorded and about to be executed."""

    type: Annotated[Literal["tool.started"], _TYPE]
    tool_call_id: Annotated[str, _CALL]
    name: Annotated[str, _TOOL]
    params: Annotated[Mapping[str, object], "Arguments of the call."]


class ToolProgressEvent(EventView):
    """A server reports progress of a tool call."""

    type: Annotated[Literal["tool.progress"], _TYPE]
    tool_call_id: Annotated[str, _CALL]
    progress: Annotated[float, "Progress so far."]
    total: NotRequired[Annotated[float, "Progress at the end."]]
    message: NotRequired[Annotated[str, "What the server is doing."]]


class ToolSettledView(EventView):
    """Fields of the events that end a tool call."""

    tool_call_id: Annotated[str, _CALL]
    name: Annotated[str, _TOOL]
    duration_ms: Annotated[int, "Duration of the call."]
    server: Annotated[str | None, "Slug of the tool's MCP server; null for a native tool."]
    decision: NotRequired[Annotated[PolicyDecisionView, "What policy decided, if it was asked."]]


class ToolExecutedEvent(ToolSettledView):
    """A tool call has its result."""

    type: Annotated[Literal["tool.executed"], _TYPE]


class ToolFailedEvent(ToolSettledView):
    """A tool call failed."""

    type: Annotated[Literal["tool.failed"], _TYPE]
    error: Annotated[ErrorView, "Why it failed."]


class ToolBlockedEvent(ToolSettledView):
    """A tool call was not executed."""

    type: Annotated[Literal["tool.blocked"], _TYPE]
    reason: Annotated[str, "Code of the reason."]


class RunRequiresActionEvent(EventView):
    """The run waits for people or clients."""

    type: Annotated[Literal["run.requires_action"], _TYPE]
    pending: Annotated[list[ToolUseView], "Tool calls that it waits for."]


class RunResumedEvent(EventView):
    """Nothing is pending any more; the run is queued again."""

    type: Annotated[Literal["run.resumed"], _TYPE]
    client_request: NotRequired[
        Annotated[dict[str, object], "What answers in the protocol of its client repeat of the request."]
    ]


class RunHaltedEvent(EventView):
    """Ended by policy, or by a canary token."""

    type: Annotated[Literal["run.halted"], _TYPE]
    reason: Annotated[str, "Code of the reason."]
    canary_id: NotRequired[Annotated[str, "Id of the canary token."]]
    tool_call_id: NotRequired[Annotated[str, "Id of the tool call that ended it."]]


class RunCompletedEvent(EventView):
    """Ended with an answer."""

    type: Annotated[Literal["run.completed"], _TYPE]


class RunIncompleteEvent(EventView):
    """Ended without a whole answer: at a limit, or because the model's last reply was cut, filtered
    or refused."""

    type: Annotated[Literal["run.incomplete"], _TYPE]
    reason: Annotated[IncompleteReason, "The limit, or why the last reply is incomplete."]


class RunFailedEvent(EventView):
    """Ended by an error."""

    type: Annotated[Literal["run.failed"], _TYPE]
    error: Annotated[ErrorView, "Why it failed."]


class RunCancelledEvent(EventView):
    """Cancelled by a request, or by the next run of the thread."""

    type: Annotated[Literal["run.cancelled"], _TYPE]


class RunStreamEnd(TypedDict):
    """The last item of a stream: the run has ended or requires action. It is not stored and has no
    id."""

    type: Annotated[Literal["end"], _TYPE]
    status: Annotated[RunStatus, "Status of the run."]


_EVENTS = (
    RunQueuedEvent,
    RunStartedEvent,
    TurnStartedEvent,
    MessageDeltaEvent,
    ReasoningDeltaEvent,
    MessageCompletedEvent,
    MessageDiscardedEvent,
    ModelRetryingEvent,
    ToolStartedEvent,
    ToolProgressEvent,
    ToolExecutedEvent,
    ToolFailedEvent,
    ToolBlockedEvent,
    RunRequiresActionEvent,
    RunResumedEvent,
    RunHaltedEvent,
    RunCompletedEvent,
    RunIncompleteEvent,
    RunFailedEvent,
    RunCancelledEvent,
)
RunEventView = Annotated[Mapping[str, object], OneOf("RunEventView", _EVENTS)]
"""A stored event of a run."""
RunStreamItem = Annotated[Mapping[str, object], OneOf("RunStreamItem", (*_EVENTS, RunStreamEnd))]
"""The data of one server-sent event."""
