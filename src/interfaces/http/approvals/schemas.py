"""Bodies that decide approvals."""

from enum import StrEnum
from typing import Annotated, ClassVar, cast

from pydantic import Field

from domain.json_value import JsonObject
from interfaces.http.bodies import Body

MAX_REASON = 2_000


class ApprovalDecision(StrEnum):
    """The decision on a tool call."""

    APPROVE = "approve"
    DENY = "deny"


class DecisionBody(Body):
    """A decision about a tool call. `arguments` (approvals only) replace the model's, within the
    tool's schema and policy. The model sees the reason of a denial."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"decision": "deny", "reason": "Not on Fridays."},)

    decision: Annotated[ApprovalDecision, Field(strict=False, description="Whether the call may be executed.")]
    arguments: dict[str, object] | None = Field(default=None, description="Arguments that replace the model's.")
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = Field(
        default=None, description="Reason of the decision; the model sees that of a denial."
    )

    @property
    def approves(self) -> bool:
        """Whether the call may be made."""
        return self.decision is ApprovalDecision.APPROVE

    @property
    def edited(self) -> JsonObject | None:
        """Replacement arguments, if any."""
        return cast("JsonObject | None", self.arguments)
