"""Notes between the processes that serve one gateway call: questions, answers, outcomes and
cancellations."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.ids import GatewayNoteId, GatewaySessionId, OrganizationId, ToolCallId


class GatewayNoteKind(StrEnum):
    """The kinds of notes.

    - `question`: a question to the client in the middle of a call; its answer is stored with it.
    - `outcome`: the outcome of a call that another process waits for.
    - `cancellation`: a client cancels work that another process may be executing.
    """

    QUESTION = "question"
    OUTCOME = "outcome"
    CANCELLATION = "cancellation"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayNote:
    """A note of a session about one of its calls; the id of a cancellation is derived from what it
    cancels.

    `sealed` and `answer` are encrypted. The note is ignored after `expires_at`.
    """

    id: GatewayNoteId
    organization_id: OrganizationId
    session_id: GatewaySessionId
    kind: GatewayNoteKind
    created_at: datetime
    expires_at: datetime
    call_id: ToolCallId | None = None
    sealed: bytes | None = field(default=None, repr=False)
    answer: bytes | None = field(default=None, repr=False)
