"""The tool ledger: every call of a run is recorded before it is executed and settled afterwards."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.approvals.approval import ApprovalRequest
from domain.copies import with_changes
from domain.ids import McpServerId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.mcp.elicitation import Elicitation, ElicitationAction
from domain.tools.capabilities import ToolCapability, ToolType, capability_of
from domain.tools.result import ToolOutcome, ToolResult


class ToolCallState(StrEnum):
    """The state of a ledger entry.

    - `recorded`: intended, perhaps sent.
    - `awaiting_client`: the client settles it. `awaiting_input`: its server asks for input.
    - `input_given`: answered, but not sent again yet.
    - `awaiting_approval`: not decided yet. `approved`: not sent yet.
    - `undecided`: its agent has changed, so it is checked again.
    - `settled`: the outcome is known.
    """

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
        """Whether the run must wait for a client or an approver."""
        return self in (
            ToolCallState.AWAITING_CLIENT,
            ToolCallState.AWAITING_INPUT,
            ToolCallState.AWAITING_APPROVAL,
        )

    @property
    def is_executable(self) -> bool:
        """Whether a worker must process the call before its turn can end."""
        return self in (
            ToolCallState.RECORDED,
            ToolCallState.INPUT_GIVEN,
            ToolCallState.APPROVED,
            ToolCallState.UNDECIDED,
        )


@dataclass(frozen=True, kw_only=True)  # no slots: `with_changes` copies its fields at once
class ToolCall:
    """A ledger entry.

    - `name` is the tool, `params` are its arguments. `type` is None for a tool that the run does
      not have.
    - `called_as` is the tool that the model called to reach it; the result answers that call.
    - `repeatable`: whether the call may be sent again if its outcome is lost, decided when it was
      recorded.
    - `elicitation` is the open question, `input` the sealed `InputRound` until the call is settled.
    - `approval` is set if the call requires or required one.
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

    def settled(self, result: ToolResult, *, at: datetime, duration_ms: int = 0) -> "ToolCall":
        """The call with its outcome, which is stored once."""
        return with_changes(
            self,
            state=ToolCallState.SETTLED,
            result=result,
            duration_ms=duration_ms,
            settled_at=at,
            elicitation=None,
            input=None,
        )

    @property
    def outcome(self) -> tuple[ToolResult, datetime]:
        """Result and time of a settled call. Raises ValueError for another call."""
        if self.result is None or self.settled_at is None:
            raise ValueError(f"call {self.id} is not settled")
        return self.result, self.settled_at

    @property
    def is_displayed(self) -> bool:
        """Whether the client settles the call once it is allowed."""
        return self.type is not None and capability_of(self.type) is ToolCapability.DISPLAYABLE

    @property
    def was_perhaps_sent(self) -> bool:
        """Whether the ledger says that the call may have taken effect without a stored outcome."""
        if self.state is ToolCallState.SETTLED:
            return False
        return self.state is ToolCallState.RECORDED or (self.approval is not None and self.approval.outcome_unknown)

    @property
    def was_settled_by_people(self) -> bool:
        """Whether its client or an approver settled it while no worker executed the run."""
        if self.result is None or self.settled_at == self.recorded_at:
            return False
        if self.approval is None:
            return self.is_displayed
        refused = ToolOutcome.UNKNOWN if self.approval.outcome_unknown else ToolOutcome.BLOCKED
        return self.is_displayed or self.result.outcome is refused


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswer:
    """An answer to a waiting call: `input` is the sealed round with it, `next` the question after
    `request_id`, if any. `action` is what a person did; None if the question settled itself."""

    tool_call_id: ToolCallId
    request_id: str
    input: bytes
    next: Elicitation | None
    action: ElicitationAction | None = None
