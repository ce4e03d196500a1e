"""Events of a run: its public record, numbered without gaps by the journal."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import RunId
from domain.json_value import JsonObject


class RunEventType(StrEnum):
    """Kinds of events; the values are public."""

    RUN_QUEUED = "run.queued"
    RUN_STARTED = "run.started"
    TURN_STARTED = "turn.started"
    MESSAGE_DELTA = "message.delta"
    REASONING_DELTA = "reasoning.delta"
    MESSAGE_COMPLETED = "message.completed"
    MESSAGE_DISCARDED = "message.discarded"
    MODEL_RETRYING = "model.retrying"
    TOOL_STARTED = "tool.started"
    TOOL_PROGRESS = "tool.progress"
    TOOL_EXECUTED = "tool.executed"
    TOOL_FAILED = "tool.failed"
    TOOL_BLOCKED = "tool.blocked"
    RUN_REQUIRES_ACTION = "run.requires_action"
    RUN_RESUMED = "run.resumed"
    RUN_HALTED = "run.halted"
    RUN_COMPLETED = "run.completed"
    RUN_INCOMPLETE = "run.incomplete"
    RUN_FAILED = "run.failed"
    RUN_CANCELLED = "run.cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to be stored; the journal assigns its number. `data` has the type's own fields as
    JSON."""

    type: RunEventType
    at: datetime
    data: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """A stored event. `seq` starts at 1 and has no gaps within a run."""

    run_id: RunId
    seq: int
    type: RunEventType
    at: datetime
    data: JsonObject
