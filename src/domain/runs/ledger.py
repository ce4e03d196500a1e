"""The tool ledger: every call of a run is recorded before it is executed and settled after."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import McpServerId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult


class ToolCallState(StrEnum):
    """`recorded`: intended, perhaps sent. `awaiting_client`: the client settles it. `settled`: its outcome is known."""

    RECORDED = "recorded"
    AWAITING_CLIENT = "awaiting_client"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A ledger entry. `name` is what the model called; `type` is None for a tool the run does not have.

    `repeatable` was decided when the call was recorded: whether it may be sent again should its outcome be lost.
    """

    id: ToolCallId
    run_id: RunId
    turn: int
    index: int
    name: str
    type: ToolType | None
    server_id: McpServerId | None
    params: JsonObject
    repeatable: bool
    state: ToolCallState
    recorded_at: datetime
    result: ToolResult | None = None
    duration_ms: int | None = None
    settled_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of a recorded call, to be written once."""

    tool_call_id: ToolCallId
    result: ToolResult
    duration_ms: int
    at: datetime
