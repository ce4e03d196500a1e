"""What taking a run up writes: `run.started`, the user's message the first time, and the beginning of the turn."""

from datetime import datetime

from application.runs.ports import Step
from application.runs.run_events import message_completed, run_started, turn_started
from domain.ids import MessageId, message_id
from domain.json_value import JsonObject
from domain.runs.audit_trail import run_started_audit
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from domain.threads.message import Message, Role

REPLY_EVENTS = (RunEventType.MESSAGE_DELTA, RunEventType.MESSAGE_COMPLETED, RunEventType.MESSAGE_DISCARDED)
"""The newest event of these kinds tells whether a message was left unfinished: it is a delta."""


def claiming_step(
    claimed: Run, open_calls: tuple[ToolCall, ...], *, at: datetime, abandoned: MessageId | None = None
) -> Step:
    """The step that `RunLeases.claim` stores together with the lease. `claimed` already has its new epoch.

    `abandoned` is the message whose deltas are the last word of a former worker: it will never be completed, and is taken
    back. With open calls (a resumed run) the turn begins only after their results, so `turn.started` is left to the loop.
    """
    events: list[NewEvent] = [run_started(claimed, at=at)]
    if abandoned is not None:
        data: JsonObject = {"message_id": abandoned, "reason": "worker_lost"}
        events.append(NewEvent(type=RunEventType.MESSAGE_DISCARDED, at=at, data=data))
    messages: tuple[Message, ...] = ()
    first = claimed.attempt == 1
    if first:
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
