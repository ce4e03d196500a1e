"""The tool ledger: every call of a run is recorded before it is executed and settled after."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from domain.approvals.approval import ApprovalRequest
from domain.ids import McpServerId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.mcp.elicitation import Elicitation
from domain.tools.capabilities import ToolCapability, ToolType, capability_of
from domain.tools.result import ToolOutcome, ToolResult


class ToolCallState(StrEnum):
    """`recorded`: intended, perhaps sent. `awaiting_client`: the client settles it. `awaiting_input`: its server asks for
    input. `input_given`: answered, but not sent again yet. `awaiting_approval`: somebody has to approve it. `approved`: not
    sent yet. `undecided`: its agent has changed, and it is decided about anew. `settled`: its outcome is known."""

    RECORDED = "recorded"
    AWAITING_CLIENT = "awaiting_client"
    AWAITING_INPUT = "awaiting_input"
    INPUT_GIVEN = "input_given"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    UNDECIDED = "undecided"
    SETTLED = "settled"

    @property
    def is_waiting(self) -> bool:
        """Whether somebody outside has to say something before the run can go on."""
        return self in (
            ToolCallState.AWAITING_CLIENT,
            ToolCallState.AWAITING_INPUT,
            ToolCallState.AWAITING_APPROVAL,
        )

    @property
    def is_executable(self) -> bool:
        """Whether a worker has to see to the call before its turn can end."""
        return self in (
            ToolCallState.RECORDED,
            ToolCallState.INPUT_GIVEN,
            ToolCallState.APPROVED,
            ToolCallState.UNDECIDED,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A ledger entry. `name` is the tool that is meant, with its arguments `params`; `type` is None for a tool the run does
    not have. `called_as` is what the model called instead, in order to have the tool called: its result answers that.

    `repeatable` was decided when the call was recorded: whether it may be sent again should its outcome be lost.
    `elicitation` is the question it waits for, `input` its sealed `InputRound`, kept from the first question until the
    call is settled. `approval` is there when it needs one, or needed one.
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
    approval: ApprovalRequest | None = None
    called_as: str | None = None

    def settled(self, settlement: "Settlement") -> "ToolCall":
        """The entry after its settlement."""
        return replace(
            self,
            state=ToolCallState.SETTLED,
            result=settlement.result,
            duration_ms=settlement.duration_ms,
            settled_at=settlement.at,
            elicitation=None,
            input=None,
        )

    @property
    def is_displayed(self) -> bool:
        """Whether the client settles the call, once it may be made."""
        return self.type is not None and capability_of(self.type) is ToolCapability.DISPLAYABLE

    @property
    def was_perhaps_sent(self) -> bool:
        """Whether the call may have taken effect, as far as the ledger knows: its outcome is lost unless a worker has it."""
        if self.state is ToolCallState.SETTLED:
            return False
        return self.state is ToolCallState.RECORDED or (self.approval is not None and self.approval.outcome_unknown)

    @property
    def was_settled_by_people(self) -> bool:
        """Whether its client settled it, or whoever was to approve it, while no worker had the run."""
        if self.result is None or self.settled_at == self.recorded_at:
            return False
        if self.approval is None:
            return self.is_displayed
        refused = ToolOutcome.UNKNOWN if self.approval.outcome_unknown else ToolOutcome.BLOCKED
        return self.is_displayed or self.result.outcome is refused


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
