"""Ports of the webhooks slice: stored deliveries, the keys that sign them, and who sends them.

Deliveries are written with the events they announce (`announced`), by whatever stores a step of a run.
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
from domain.webhooks.delivery import Attempt, WebhookDelivery
from domain.webhooks.signing import WebhookKey

WEBHOOKS_TOPIC = "webhooks"
"""Woken when there may be something to deliver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Whose deliveries to which receiver: what one dead receiver may hold up."""

    organization_id: OrganizationId
    receiver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """A delivery that is this process's to attempt, with all that takes. `body` was written with the event."""

    delivery: WebhookDelivery
    webhook: Webhook
    body: str = field(repr=False)

    @property
    def lane(self) -> Lane:
        """Where it stands in line."""
        return Lane(organization_id=self.delivery.organization_id, receiver=self.delivery.receiver)


class RunLookup(Protocol):
    """Reads one run."""

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""
        ...


class WebhookDeliveryStore(Protocol):
    """Deliveries: of all organizations for those who send, of one for those who look."""

    async def next_due(self, *, but: frozenset[Lane]) -> datetime | None:
        """When the earliest open delivery outside of these lanes is due; None without any."""
        ...

    async def claim(
        self, *, at: datetime, until: datetime, limit: int, per_lane: int, busy: Mapping[Lane, int]
    ) -> tuple[ClaimedDelivery, ...]:
        """Take up to `limit` deliveries due at `at`, the earliest first, as `WebhookDelivery.taken`; of each lane no more
        than `per_lane` less those already `busy`. Each goes to one caller, until that moment."""
        ...

    async def release_all(self, *, at: datetime) -> int:
        """Make every delivery that somebody took due at that moment: for the one process there is. Returns how many."""
        ...

    async def settle(self, taken: WebhookDelivery, after: WebhookDelivery) -> bool:
        """Store what became of an attempt. False, and no change, if somebody else took the delivery meanwhile."""
        ...

    async def get(self, organization_id: OrganizationId, delivery_id: WebhookDeliveryId) -> WebhookDelivery | None:
        """The delivery, or None."""
        ...

    async def of_run(
        self, organization_id: OrganizationId, run_id: RunId, request: PageRequest
    ) -> Page[WebhookDelivery]:
        """A run's deliveries, newest first."""
        ...

    async def retry(self, seen: WebhookDelivery, after: WebhookDelivery, audit: AuditEvent) -> bool:
        """Store that a round begins anew, and wake who sends. False, and no change, if it is not as `seen` any more."""
        ...


class WebhookKeyStore(Protocol):
    """Signing keys of organizations, encrypted at rest."""

    async def in_force(self, organization_id: OrganizationId, *, at: datetime) -> tuple[WebhookKey, ...]:
        """Keys that sign at `at`, the newest first; the newest, which has no end, is missing only before the first use."""
        ...

    async def add_first(self, key: WebhookKey) -> None:
        """Store an organization's first key. Nothing happens if it has one without an end by now."""
        ...

    async def replace(self, key: WebhookKey, *, former_until: datetime, audit: AuditEvent) -> bool:
        """Store a new key; the present one signs until then, and older ones no more. False if there was none before."""
        ...


class WebhookSender(Protocol):
    """The way out: through the egress guard, without redirects, within bounds of size and time."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        """POST. Does not raise for what a receiver, or the way to it, may do."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
