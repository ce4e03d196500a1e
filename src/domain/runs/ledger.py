"""The tool ledger: every call of a run is recorded before it is executed and settled after."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import McpServerId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.elicitation import Elicitation
from domain.tools.result import ToolResult


class ToolCallState(StrEnum):
    """`recorded`: intended, perhaps sent. `awaiting_client`: the client settles it. `awaiting_input`: its server asks for
    input. `input_given`: answered, but not sent again yet. `settled`: its outcome is known."""

    RECORDED = "recorded"
    AWAITING_CLIENT = "awaiting_client"
    AWAITING_INPUT = "awaiting_input"
    INPUT_GIVEN = "input_given"
    SETTLED = "settled"

    @property
    def is_waiting(self) -> bool:
        """Whether somebody outside has to say something before the run can go on."""
        return self in (ToolCallState.AWAITING_CLIENT, ToolCallState.AWAITING_INPUT)

    @property
    def is_executable(self) -> bool:
        """Whether a worker has to send the call."""
        return self in (ToolCallState.RECORDED, ToolCallState.INPUT_GIVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A ledger entry. `name` is the tool that is meant, with its arguments `params`; `type` is None for a tool the run does
    not have. `called_as` is what the model called instead, in order to have the tool called: its result answers that.

    `repeatable` was decided when the call was recorded: whether it may be sent again should its outcome be lost.
    `elicitation` is the question it waits for, `input` its sealed `InputRound`, kept from the first question until the
    call is settled.
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
    elicitation: Elicitation | None = None
    input: bytes | None = None
    called_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswer:
    """An answer to a call that waits for input: `input` is the sealed round with it, `next` the question after the one
    named by `request_id`, if any."""

    tool_call_id: ToolCallId
    request_id: str
    input: bytes
    next: Elicitation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of a recorded call, to be written once."""

    tool_call_id: ToolCallId
    result: ToolResult
    duration_ms: int
    at: datetime
