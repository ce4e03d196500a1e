"""Ports of the webhooks slice: stored deliveries, signing keys, and the sender.

Deliveries are stored with the events that they announce (`announced`), by every adapter that stores
a step of a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId, RunId, WebhookDeliveryId
from domain.runs.run import Run
from domain.runs.webhook import Webhook
from domain.teams import Teams
from domain.webhooks.delivery import Attempt, DeliveryState, WebhookDelivery
from domain.webhooks.signing import WebhookKey

WEBHOOKS_TOPIC = "webhooks"
"""Signalled when there may be something to deliver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The deliveries of one organization to one receiver. A dead receiver blocks at most its
    lane."""

    organization_id: OrganizationId
    receiver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """A delivery that this process may attempt, with everything needed. `body` was stored with the
    event; `headers` are those that the receiver of an A2A task wants. Of a notice `webhook` is
    None: the secret that `receiver` names has the address."""

    delivery: WebhookDelivery
    webhook: Webhook | None
    body: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def lane(self) -> Lane:
        return Lane(organization_id=self.delivery.organization_id, receiver=self.delivery.receiver)


class RunLookup(Protocol):
    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""


class WebhookDeliveryStore(Protocol):
    """Deliveries: of all organizations for the sender, of one for readers."""

    async def next_due(self, *, but: frozenset[Lane]) -> datetime | None:
        """When the earliest open delivery outside these lanes is due; None if there is none."""

    async def claim(
        self, *, at: datetime, until: datetime, limit: int, per_lane: int, busy: Mapping[Lane, int]
    ) -> tuple[ClaimedDelivery, ...]:
        """Claim up to `limit` deliveries due at `at`, earliest first, as `WebhookDelivery.taken`
        until `until`. Each lane gets at most `per_lane` minus those already `busy`. A delivery goes
        to one caller only."""

    async def release_all(self, *, at: datetime) -> int:
        """Make every claimed delivery due at `at`; for the only process. Returns how many."""

    async def settle(self, taken: WebhookDelivery, after: WebhookDelivery) -> bool:
        """Store the result of an attempt. False, and no change, if another process has claimed the
        delivery meanwhile."""

    async def get(
        self, organization_id: OrganizationId, delivery_id: WebhookDeliveryId, *, teams: Teams = None
    ) -> WebhookDelivery | None:
        """The delivery, or None; of runs that teams own, only of those of `teams`."""

    async def of_run(
        self, organization_id: OrganizationId, run_id: RunId, request: PageRequest
    ) -> Page[WebhookDelivery]:
        """A run's deliveries, newest first."""

    async def of_inbox(self, organization_id: OrganizationId, request: PageRequest) -> Page[WebhookDelivery]:
        """Deliveries to the webhook of the organization's inbox, newest first."""

    async def retry(self, seen: WebhookDelivery, after: WebhookDelivery, audit: AuditEvent) -> bool:
        """Start a new round and signal the sender. False, and no change, if the delivery is no
        longer as `seen`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Conditions that a delivery must all meet; None does not restrict. `since` is inclusive,
    `until` exclusive.

    - With `state` or `receiver`: among the organization's `SEARCHED` newest deliveries (before
      `until`).
    - `has_notices`: also those to the webhook of the inbox.
    """

    state: DeliveryState | None = None
    receiver: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    has_notices: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReceiver:
    """What was sent to one receiver, among the organization's newest deliveries, and the newest of
    these. `of_inbox`: the webhook of the inbox, whose `receiver` is the name of a secret."""

    receiver: str
    of_inbox: bool
    deliveries: int
    open: int
    failed: int
    last: WebhookDelivery


class DeliveryReports(Protocol):
    """Reads the deliveries of an organization, to all webhooks."""

    async def page(
        self, organization_id: OrganizationId, wanted: DeliveryFilter, request: PageRequest
    ) -> Page[WebhookDelivery]:
        """Matching deliveries, newest first."""

    async def receivers(
        self, organization_id: OrganizationId, *, has_notices: bool, limit: int, teams: Teams = None
    ) -> tuple[WebhookReceiver, ...]:
        """Receivers of the `SEARCHED` newest deliveries, up to `limit`, the last used first; of
        runs that teams own, only of those of `teams`."""


class WebhookKeyStore(Protocol):
    """Signing keys of organizations, encrypted at rest."""

    async def in_force(self, organization_id: OrganizationId, *, at: datetime) -> tuple[WebhookKey, ...]:
        """Keys valid at `at`, newest first. The newest key never expires; it is missing only before
        the first use."""

    async def add_first(self, key: WebhookKey) -> None:
        """Store an organization's first key. Does nothing if one without expiry exists."""

    async def replace(self, key: WebhookKey, *, former_until: datetime, audit: AuditEvent) -> bool:
        """Store a new key. The current one signs until `former_until`, older ones stop. False if
        there was none."""


class ServiceAddress(Protocol):
    @property
    def url(self) -> str | None:
        """Where people reach the service, without a trailing slash; None if that is not known."""
        ...


class WebhookSender(Protocol):
    """Sends through the egress guard, without redirects, with bounds on size and time."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        """POST the body. Failures of the receiver or the network are returned, not raised."""

    async def close(self) -> None:
        """Close every connection."""
