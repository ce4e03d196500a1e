"""Builders of run events with the public field names: one function per event that several places
write."""

from datetime import datetime
from typing import cast

from domain.ids import MessageId
from domain.json_value import JsonObject, JsonValue
from domain.policy.decision import Decision
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.runs.usage import ModelSpending
from domain.threads.message import Message, ToolUse
from domain.threads.message_json import message_of_event, tool_use_to_json
from domain.tools.result import ToolOutcome

_ENDINGS = {
    RunStatus.COMPLETED: RunEventType.RUN_COMPLETED,
    RunStatus.INCOMPLETE: RunEventType.RUN_INCOMPLETE,
    RunStatus.FAILED: RunEventType.RUN_FAILED,
    RunStatus.CANCELLED: RunEventType.RUN_CANCELLED,
    RunStatus.HALTED: RunEventType.RUN_HALTED,
}
_OUTCOMES = {
    ToolOutcome.SUCCEEDED: RunEventType.TOOL_EXECUTED,
    ToolOutcome.FAILED: RunEventType.TOOL_FAILED,
    ToolOutcome.UNKNOWN: RunEventType.TOOL_FAILED,
    ToolOutcome.BLOCKED: RunEventType.TOOL_BLOCKED,
}


def run_queued(run: Run, *, at: datetime) -> NewEvent:
    return NewEvent(type=RunEventType.RUN_QUEUED, at=at, data={"thread_id": run.thread_id, "agent_id": run.agent_id})


def run_started(run: Run, *, at: datetime) -> NewEvent:
    """`attempt` starts at 1."""
    return NewEvent(
        type=RunEventType.RUN_STARTED, at=at, data={"attempt": run.attempt, "agent_version": run.agent_version}
    )


def turn_started(turn: int, *, at: datetime) -> NewEvent:
    """Turns start at 1."""
    return NewEvent(type=RunEventType.TURN_STARTED, at=at, data={"turn": turn})


def run_resumed(*, at: datetime, client_request: JsonObject | None = None) -> NewEvent:
    """`client_request` is what the answer in a client's protocol repeats from its request."""
    data: JsonObject = {} if client_request is None else {"client_request": client_request}
    return NewEvent(type=RunEventType.RUN_RESUMED, at=at, data=data)


def run_requires_action(pending: tuple[ToolUse, ...], *, at: datetime) -> NewEvent:
    calls: list[JsonValue] = [tool_use_to_json(use) for use in pending]
    return NewEvent(type=RunEventType.RUN_REQUIRES_ACTION, at=at, data={"pending": calls})


def run_ended(run: Run, *, at: datetime) -> NewEvent:
    """With `error` or `reason` where there is one."""
    data: JsonObject = {}
    if run.error is not None:
        data["error"] = {"code": run.error.code, "detail": run.error.detail}
    if run.incomplete_reason is not None:
        data["reason"] = run.incomplete_reason.value
    return NewEvent(type=_ENDINGS[run.status], at=at, data=data)


def run_halted(*, reason: str, tool_call_id: str | None, at: datetime, canary_id: str | None = None) -> NewEvent:
    """Policy ended the run because of that call, or a canary token did."""
    data: JsonObject = {"reason": reason}
    if canary_id is not None:
        data["canary_id"] = canary_id
    if tool_call_id is not None:
        data["tool_call_id"] = tool_call_id
    return NewEvent(type=RunEventType.RUN_HALTED, at=at, data=data)


def message_completed(message: Message, spent: ModelSpending | None = None) -> NewEvent:
    """A message is in the thread. `usage` is the cost of a model's message."""
    data: JsonObject = {"message": message_of_event(message)}
    if spent is not None:
        data["usage"] = _usage(spent)
    return NewEvent(type=RunEventType.MESSAGE_COMPLETED, at=message.created_at, data=data)


def message_discarded(
    message_id: MessageId, *, reason: str, at: datetime, spent: ModelSpending | None = None
) -> NewEvent:
    """The published part of a message is discarded. `usage` is its estimated cost."""
    data: JsonObject = {"message_id": message_id, "reason": reason}
    if spent is not None:
        data["usage"] = _usage(spent)
    return NewEvent(type=RunEventType.MESSAGE_DISCARDED, at=at, data=data)


def tool_started(call: ToolCall, *, at: datetime | None = None) -> NewEvent:
    """A recorded call is about to be executed. `at` defaults to the time of recording."""
    return NewEvent(
        type=RunEventType.TOOL_STARTED,
        at=at or call.recorded_at,
        data={"tool_call_id": call.id, "name": call.name, "params": call.params},
    )


def tool_settled(call: ToolCall, *, server: str | None, decision: Decision | None = None) -> NewEvent:
    """A call has ended: executed, failed (`error`: code and text for the model) or blocked
    (`reason`). `decision` is the policy decision, if policy was evaluated."""
    result, at = call.outcome
    data: JsonObject = {
        "tool_call_id": call.id,
        "name": call.name,
        "duration_ms": call.duration_ms,
        "server": server,
    }
    if decision is not None:
        data["decision"] = decision.as_json()
    kind = _OUTCOMES[result.outcome]
    if kind is RunEventType.TOOL_BLOCKED:
        data["reason"] = cast(str, result.error_code)
    elif kind is RunEventType.TOOL_FAILED:
        data["error"] = {"code": cast(str, result.error_code), "detail": result.text}
    return NewEvent(type=kind, at=at, data=data)


def _usage(spent: ModelSpending) -> JsonObject:
    """`{model, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost_usd,
    estimated}` of one model call; `cost_usd` is null without a price."""
    usage = spent.usage
    return {
        "model": spent.model,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost_usd": None if usage.cost_usd is None else float(usage.cost_usd),
        "estimated": usage.estimated,
    }
