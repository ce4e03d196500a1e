"""A delivery of one event to a webhook, as a state machine that interprets the receiver's
responses."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from domain.errors import conflict
from domain.ids import OrganizationId, RunId, WebhookDeliveryId

MAX_ATTEMPTS = 11
FIRST_PAUSE_S = 5.0
PAUSE_FACTOR = 3.0
LONGEST_PAUSE_S = 10 * 3_600.0
"""5 s, 15 s, 45 s, …, at most 10 h: the ten pauses add up to about a day."""
JITTER = 0.2
MAX_RETRY_AFTER_S = 24 * 3_600.0


class WebhookEvent(StrEnum):
    """What is delivered: events of runs to the webhook of the run, and what waits for people
    (`NOTICES`) to the webhook of the organization's inbox. `other` stands for one that a later
    version stored and delivers. The values are part of the public contract."""

    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_INCOMPLETE = "run.incomplete"
    RUN_CANCELLED = "run.cancelled"
    RUN_HALTED = "run.halted"
    RUN_REQUIRES_ACTION = "run.requires_action"
    APPROVAL_REQUESTED = "approval.requested"
    QUESTION_ASKED = "workflow_run.question_asked"
    TOOL_QUARANTINED = "mcp_server.tool_quarantined"
    THREAD_QUARANTINED = "thread.quarantined"
    SERVER_ASKED = "run.question_asked"
    CLIENT_TOOL_CALLED = "run.client_tool_called"
    ACCOUNT_REQUIRED = "account.required"
    AUTHORIZATION_REQUIRED = "mcp_server.authorization_required"
    OTHER = "other"


NOTICES = (
    WebhookEvent.APPROVAL_REQUESTED,
    WebhookEvent.QUESTION_ASKED,
    WebhookEvent.TOOL_QUARANTINED,
    WebhookEvent.THREAD_QUARANTINED,
    WebhookEvent.SERVER_ASKED,
    WebhookEvent.CLIENT_TOOL_CALLED,
    WebhookEvent.ACCOUNT_REQUIRED,
    WebhookEvent.AUTHORIZATION_REQUIRED,
)
"""An index has deliveries of these events, whose condition has them in this order."""


class DeliveryState(StrEnum):
    """The state of a delivery. The values are part of the public contract."""

    PENDING = "pending"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    FAILED = "failed"

    @property
    def is_open(self) -> bool:
        return self in OPEN_STATES


OPEN_STATES = (DeliveryState.PENDING, DeliveryState.DELIVERING)


class SendFailure(StrEnum):
    """Why there was no response. The values are the sentences that are shown."""

    TIMEOUT = "The receiver did not answer in time."
    UNREACHABLE = "The receiver could not be reached: there is no such host, or it does not accept connections."
    INSECURE = "The connection to the receiver is not secure; its certificate may be wrong."
    BROKEN = "The receiver broke off its answer, or does not speak HTTP."
    BLOCKED = "The receiver's address is not public, so it is not requested."
    NO_ADDRESS = "The secret with the address is missing, or is no http or https address."
    UNSIGNED = "The signing secret is missing, or is not one (whsec_ and 24 to 64 bytes in base64)."
    INTERNAL = "Something went wrong here; the log says what."


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The result of one attempt: a `status` or a `failure`."""

    status: int | None = None
    failure: SendFailure | None = None
    retry_after_s: float | None = None

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """Whether a retry is useless: a blocked address, a redirect, or a status about the request
        itself."""
        if self.status is None:
            return self.failure is SendFailure.BLOCKED
        passing = self.status in _PASSING or self.status >= 500
        return not (self.succeeded or passing)

    @property
    def error(self) -> str | None:
        """A sentence that is safe to show; it never contains text of the receiver."""
        if self.failure is not None:
            return self.failure.value
        if self.status is None or self.succeeded:
            return None
        if 300 <= self.status < 400:
            return f"The receiver answered with a redirect (HTTP {self.status}), which is not followed."
        if self.status == _GONE:
            return "The receiver wants no more of these (HTTP 410)."
        return f"The receiver answered HTTP {self.status}."


_GONE = 410
_PASSING = frozenset({408, 425, 429})
"""Request Timeout, Too Early, Too Many Requests: not about the request itself (RFC 9110, 8470,
6585)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    """One event to deliver.

    - `attempts` counts all started attempts and serves as a fencing token against slower senders.
    - `retried_after` is the number of attempts at the last manual retry.
    - While DELIVERING, the sender counts as lost from `next_attempt_at` on.
    - `push_config_id` names the config of an A2A task that has it sent, instead of the run's
      webhook.
    - `receiver` of a notice is the name of the secret that has the address. `run_id` is the run
      that waits; None without one.
    """

    id: WebhookDeliveryId
    organization_id: OrganizationId
    run_id: RunId | None
    event: WebhookEvent
    receiver: str
    created_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempts: int = 0
    retried_after: int = 0
    last_status: int | None = None
    last_error: str | None = None
    next_attempt_at: datetime | None
    delivered_at: datetime | None = None
    push_config_id: str | None = None

    def taken(self, *, until: datetime) -> "WebhookDelivery":
        return replace(self, state=DeliveryState.DELIVERING, attempts=self.attempts + 1, next_attempt_at=until)

    def attempted(self, attempt: Attempt, *, at: datetime, fraction: float) -> "WebhookDelivery":
        """The attempt ended. `fraction`, a random number from 0 to 1, spreads retries of deliveries
        that failed together."""
        told = replace(self, last_status=attempt.status, last_error=attempt.error, next_attempt_at=None)
        if attempt.succeeded:
            return replace(told, state=DeliveryState.DELIVERED, delivered_at=at)
        in_round = self.attempts - self.retried_after
        if attempt.is_final or in_round >= MAX_ATTEMPTS:
            return replace(told, state=DeliveryState.FAILED)
        asked = min(attempt.retry_after_s or 0.0, MAX_RETRY_AFTER_S)
        pause = timedelta(seconds=max(pause_s(in_round, fraction), asked))
        return replace(told, state=DeliveryState.PENDING, next_attempt_at=at + pause)

    def given_back(self, *, at: datetime) -> "WebhookDelivery":
        """The sender stops in the middle of an attempt; another one may continue at once."""
        return replace(self, state=DeliveryState.PENDING, next_attempt_at=at)

    def retried(self, *, at: datetime) -> "WebhookDelivery":
        """A person requests the delivery again, in any state: a new round of attempts starts.

        Raises CONFLICT `webhook_delivery_in_progress` during an attempt.
        """
        if self.state is DeliveryState.DELIVERING and self.next_attempt_at is not None and at < self.next_attempt_at:
            raise conflict("webhook_delivery_in_progress", f"Delivery {self.id} is being attempted at this moment.")
        return replace(
            self, state=DeliveryState.PENDING, retried_after=self.attempts, next_attempt_at=at, delivered_at=None
        )


def pause_s(attempt: int, fraction: float) -> float:
    """The pause after the attempt-th attempt (from 1): exponential, with up to JITTER in both
    directions."""
    pause = min(FIRST_PAUSE_S * PAUSE_FACTOR ** (attempt - 1), LONGEST_PAUSE_S)
    return pause * (1 + JITTER * (2 * fraction - 1))
