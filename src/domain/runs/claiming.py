"""Claiming a run: `run.started`, the user's message the first time, and the start of the turn; or
the end of the run."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from domain.ids import MessageId, message_id
from domain.json_value import JsonObject
from domain.runs.audit_trail import run_started_audit
from domain.runs.closing import cancelled_step, closing_step
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCall
from domain.runs.run import MAX_LEASE_EXPIRATIONS, Run, RunError, RunStatus
from domain.runs.run_events import message_completed, message_discarded, run_started, turn_started
from domain.runs.step import Step
from domain.threads.message import Message, Role
from domain.tools.result import ToolResult, outcome_unknown

_DELTAS = (RunEventType.MESSAGE_DELTA, RunEventType.REASONING_DELTA)
REPLY_EVENTS = (*_DELTAS, RunEventType.MESSAGE_COMPLETED, RunEventType.MESSAGE_DISCARDED)
"""If the newest event of these kinds is a delta, a message is unfinished."""

TOO_MANY_ATTEMPTS = RunError(
    code="too_many_attempts",
    detail=f"The run failed: {MAX_LEASE_EXPIRATIONS} workers in a row were lost while executing it, without progress."
    " The last ones executed no other suspected run.",
)
_GIVEN_UP = "The run failed before this call was sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspected:
    """The run is suspected of ending workers. Only a worker without another suspect may claim
    it."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """A locked run that a worker wants to claim. `is_next`: it is queued, it is the first
    unfinished run of its thread, and the thread is not quarantined. `agent_version` is the
    agent's newest. `abandoned` as for `claiming_step`. `takes_suspects`: the worker executes no
    other suspect."""

    run: Run
    is_next: bool
    agent_version: int
    takes_suspects: bool = True
    open_calls: tuple[ToolCall, ...] = ()
    abandoned: MessageId | None = None


def decide_claim(facts: ClaimFacts, *, at: datetime) -> Step | Suspected | None:
    """The step that claims the run, or ends it if it must not be executed. None if it cannot be
    claimed now, Suspected if it must be executed apart from other suspects."""
    if not facts.is_next:
        return None
    ending = ending_at_claim(facts.run, facts.open_calls, at=at, abandoned=facts.abandoned)
    if ending is not None:
        return ending
    if facts.run.is_suspect and not facts.takes_suspects:
        return Suspected(run=facts.run)
    claimed = facts.run.claimed(at=at, agent_version=facts.agent_version)
    return claiming_step(claimed, facts.open_calls, at=at, abandoned=facts.abandoned)


def abandoned_message(newest: RunEventType, data: JsonObject) -> MessageId | None:
    """The message that a lost worker was streaming, from the run's newest event of
    `REPLY_EVENTS`."""
    return MessageId(cast(str, data["message_id"])) if newest in _DELTAS else None


def ending_at_claim(
    queued: Run, open_calls: tuple[ToolCall, ...], *, at: datetime, abandoned: MessageId | None = None
) -> Step | None:
    """The end of a run that must not be claimed: its cancellation was requested, or too many
    workers were lost with it (E4). Calls that were perhaps sent have an unknown outcome.
    `abandoned` as for `claiming_step`."""
    if queued.cancel_requested_by is not None:
        step = cancelled_step(queued, open_calls, at=at, actor=queued.cancel_requested_by)
    elif queued.is_lost_too_often:
        ended = queued.ended(RunStatus.FAILED, at=at, error=TOO_MANY_ATTEMPTS)
        perhaps_sent = tuple(call.settled(outcome_unknown(), at=at) for call in open_calls if call.was_perhaps_sent)
        unsent = ToolResult.failed("run_failed", _GIVEN_UP)
        step = closing_step(ended, open_calls, result=unsent, at=at, known=perhaps_sent)
    else:
        return None
    return replace(step, events=(*_taken_back(abandoned, at), *step.events))


def claiming_step(
    claimed: Run, open_calls: tuple[ToolCall, ...], *, at: datetime, abandoned: MessageId | None = None
) -> Step:
    """The step stored together with the lease. `claimed` has its new epoch.

    - `abandoned` is a message that a lost worker left unfinished; it is discarded.
    - The first claim adds the user's message, unless the run is a retry.
    - With open calls (a resumed run), the turn starts after their results, so the loop adds
      `turn.started`.
    """
    events: list[NewEvent] = [run_started(claimed, at=at), *_taken_back(abandoned, at)]
    messages: tuple[Message, ...] = ()
    first = claimed.attempt == 1
    if first and claimed.retry_of is None:
        message = Message(
            id=message_id(claimed.id, 0, "user"),
            thread_id=claimed.thread_id,
            run_id=claimed.id,
            role=Role.USER,
            content=claimed.input,
            created_at=at,
        )
        messages = (message,)
        events.append(message_completed(message))
    if not open_calls:
        events.append(turn_started(claimed.usage.turns + 1, at=at))
    return Step(
        run=claimed,
        events=tuple(events),
        messages=messages,
        audit=(run_started_audit(claimed, at=at),) if first else (),
    )


def _taken_back(abandoned: MessageId | None, at: datetime) -> tuple[NewEvent, ...]:
    return () if abandoned is None else (message_discarded(abandoned, reason="worker_lost", at=at),)
