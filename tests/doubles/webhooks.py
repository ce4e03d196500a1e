"""Webhook deliveries and signing keys in memory."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from application.webhooks.announcing import Announcement
from application.webhooks.ports import WEBHOOKS_TOPIC, ClaimedDelivery, Lane
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId, RunId, WebhookDeliveryId
from domain.teams import Teams, sees
from domain.webhooks.delivery import NOTICES, DeliveryState, WebhookDelivery
from domain.webhooks.signing import WebhookKey
from tests.doubles.owners import team_of
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryWebhookDeliveryStore:
    """The `WebhookDeliveryStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def next_due(self, *, but: frozenset[Lane]) -> datetime | None:
        """When the earliest open delivery outside of these lanes is due."""
        return min((moment for moment, _, stored in self._open() if _lane_of(stored.delivery) not in but), default=None)

    async def claim(
        self, *, at: datetime, until: datetime, limit: int, per_lane: int, busy: Mapping[Lane, int]
    ) -> tuple[ClaimedDelivery, ...]:
        """Take deliveries that are due."""
        taken: list[ClaimedDelivery] = []
        in_lane = dict(busy)
        for moment, id_, stored in self._open():
            lane = _lane_of(stored.delivery)
            if moment > at or len(taken) >= limit or in_lane.get(lane, 0) >= per_lane:
                continue
            if stored.delivery.event in NOTICES or stored.delivery.run_id is None:
                after = stored.delivery.taken(until=until)
                self._state.deliveries[id_] = replace(stored, delivery=after)
                taken.append(ClaimedDelivery(delivery=after, webhook=None, body=stored.body))
                continue
            told = self._state.runs[stored.delivery.run_id]
            target = told.push_configs.get(stored.delivery.push_config_id or "")
            if target is not None:
                webhook, headers = target.target.webhook, target.target.headers
            elif told.run.webhook is not None and told.webhook_url is not None:
                webhook, headers = told.run.webhook.at(told.webhook_url), {}
            else:
                continue
            in_lane[lane] = in_lane.get(lane, 0) + 1
            after = stored.delivery.taken(until=until)
            self._state.deliveries[id_] = replace(stored, delivery=after)
            taken.append(ClaimedDelivery(delivery=after, webhook=webhook, body=stored.body, headers=headers))
        return tuple(taken)

    async def release_all(self, *, at: datetime) -> int:
        """Make every delivery that somebody took due."""
        taken = {
            id_: stored
            for id_, stored in self._state.deliveries.items()
            if stored.delivery.state is DeliveryState.DELIVERING
        }
        for id_, stored in taken.items():
            self._state.deliveries[id_] = replace(stored, delivery=replace(stored.delivery, next_attempt_at=at))
        return len(taken)

    async def settle(self, taken: WebhookDelivery, after: WebhookDelivery) -> bool:
        """Store what became of an attempt."""
        return self._change(taken, after)

    async def get(
        self, organization_id: OrganizationId, delivery_id: WebhookDeliveryId, *, teams: Teams = None
    ) -> WebhookDelivery | None:
        """The delivery, or None."""
        stored = self._state.deliveries.get(delivery_id)
        if stored is None or stored.delivery.organization_id != organization_id:
            return None
        return stored.delivery if sees(teams, team_of(self._state, stored.delivery.run_id)) else None

    async def of_run(
        self, organization_id: OrganizationId, run_id: RunId, request: PageRequest
    ) -> Page[WebhookDelivery]:
        """A run's deliveries, newest first."""
        found = (
            stored.delivery
            for stored in self._state.deliveries.values()
            if stored.delivery.organization_id == organization_id and stored.delivery.run_id == run_id
        )
        return newest_first(found, lambda delivery: by_time(delivery.created_at, delivery.id), request)

    async def of_inbox(self, organization_id: OrganizationId, request: PageRequest) -> Page[WebhookDelivery]:
        """Notices of the organization, newest first."""
        found = (
            stored.delivery
            for stored in self._state.deliveries.values()
            if stored.delivery.organization_id == organization_id and stored.delivery.event in NOTICES
        )
        return newest_first(found, lambda delivery: by_time(delivery.created_at, delivery.id), request)

    async def retry(self, seen: WebhookDelivery, after: WebhookDelivery, audit: AuditEvent) -> bool:
        """Store that a round begins anew."""
        changed = self._change(seen, after)
        if changed:
            self._state.record(audit)
            self._wakeups.wake(WEBHOOKS_TOPIC)
        return changed

    def _open(self) -> list[tuple[datetime, WebhookDeliveryId, Announcement]]:
        return sorted(
            (
                (stored.delivery.next_attempt_at, id_, stored)
                for id_, stored in self._state.deliveries.items()
                if stored.delivery.state.is_open and stored.delivery.next_attempt_at is not None
            ),
            key=lambda entry: entry[:2],
        )

    def _change(self, seen: WebhookDelivery, after: WebhookDelivery) -> bool:
        stored = self._state.deliveries.get(seen.id)
        if stored is None or (stored.delivery.state, stored.delivery.attempts) != (seen.state, seen.attempts):
            return False
        self._state.deliveries[seen.id] = replace(stored, delivery=after)
        return True


class InMemoryWebhookKeyStore:
    """The `WebhookKeyStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def in_force(self, organization_id: OrganizationId, *, at: datetime) -> tuple[WebhookKey, ...]:
        """Keys that sign at that moment, the newest first."""
        found = [key for key in self._of(organization_id) if key.expires_at is None or key.expires_at > at]
        return tuple(sorted(found, key=lambda key: (key.created_at, key.id), reverse=True))

    async def add_first(self, key: WebhookKey) -> None:
        """Store an organization's first key."""
        if not any(known.expires_at is None for known in self._of(key.organization_id)):
            self._state.webhook_keys[key.organization_id] = [*self._of(key.organization_id), key]

    async def replace(self, key: WebhookKey, *, former_until: datetime, audit: AuditEvent) -> bool:
        """Store a new key; the present one signs until then."""
        former = [
            replace(known, expires_at=former_until)
            for known in self._of(key.organization_id)
            if known.expires_at is None
        ]
        self._state.webhook_keys[key.organization_id] = [*former, key]
        self._state.record(audit)
        return bool(former)

    def _of(self, organization_id: OrganizationId) -> list[WebhookKey]:
        return self._state.webhook_keys.get(organization_id, [])


def _lane_of(delivery: WebhookDelivery) -> Lane:
    return Lane(organization_id=delivery.organization_id, receiver=delivery.receiver)
