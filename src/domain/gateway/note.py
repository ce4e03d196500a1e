"""What the processes that serve one call leave for each other: questions, answers to them, outcomes and cancellations."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.ids import GatewayNoteId, GatewaySessionId, OrganizationId, ToolCallId


class GatewayNoteKind(StrEnum):
    """`question`: the client is asked something in the middle of a call, and its answer goes beside it. `outcome`: what a call
    came to whose client waits elsewhere by now. `cancellation`: a client takes back what another process may be at work on."""

    QUESTION = "question"
    OUTCOME = "outcome"
    CANCELLATION = "cancellation"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayNote:
    """A note of a session, about one of its calls; a cancellation is named by what it takes back. `sealed` and `answer` are
    encrypted. Nobody looks at it after `expires_at`."""

    id: GatewayNoteId
    organization_id: OrganizationId
    session_id: GatewaySessionId
    kind: GatewayNoteKind
    created_at: datetime
    expires_at: datetime
    call_id: ToolCallId | None = None
    sealed: bytes | None = field(default=None, repr=False)
    answer: bytes | None = field(default=None, repr=False)
