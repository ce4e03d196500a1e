"""Bodies that decide approvals."""

from enum import StrEnum
from typing import Annotated, ClassVar, cast

from pydantic import Field

from domain.json_value import JsonObject
from interfaces.http.bodies import Body

MAX_REASON = 2_000


class Word(StrEnum):
    """What is decided."""

    APPROVE = "approve"
    DENY = "deny"


class DecisionBody(Body):
    """A decision about a tool call. `arguments` take the place of the model's (approvals only), within the tool's schema and
    policy; the reason of a denial is told to the model."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"decision": "deny", "reason": "Not on Fridays."},)

    decision: Annotated[Word, Field(strict=False)]
    arguments: dict[str, object] | None = None
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None

    @property
    def approves(self) -> bool:
        """Whether the call may be made."""
        return self.decision is Word.APPROVE

    @property
    def edited(self) -> JsonObject | None:
        """The arguments, if they are to be other ones."""
        return cast("JsonObject | None", self.arguments)
