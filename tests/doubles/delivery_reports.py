"""Deliveries of an organization to all webhooks, in memory."""

from application.system.pages import Page, PageRequest
from application.webhooks.ports import DeliveryFilter, WebhookReceiver
from domain.ids import OrganizationId
from domain.teams import Teams, sees
from domain.webhooks.delivery import NOTICES, DeliveryState, WebhookDelivery
from tests.doubles.owners import team_of
from tests.doubles.paging import SortKey, by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryDeliveryReports:
    """The `DeliveryReports` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def page(
        self, organization_id: OrganizationId, wanted: DeliveryFilter, request: PageRequest
    ) -> Page[WebhookDelivery]:
        """Matching deliveries, newest first."""
        found = (
            each
            for each in self._of(organization_id, has_notices=wanted.has_notices)
            if wanted.state in (None, each.state)
            and wanted.receiver in (None, each.receiver)
            and (wanted.since is None or each.created_at >= wanted.since)
            and (wanted.until is None or each.created_at < wanted.until)
            and sees(request.teams, team_of(self._state, each.run_id))
        )
        return newest_first(found, _order, request)

    async def receivers(
        self, organization_id: OrganizationId, *, has_notices: bool, limit: int, teams: Teams = None
    ) -> tuple[WebhookReceiver, ...]:
        """The last used first."""
        groups: dict[tuple[str, bool], list[WebhookDelivery]] = {}
        for each in sorted(self._of(organization_id, has_notices=has_notices), key=_order, reverse=True):
            if not sees(teams, team_of(self._state, each.run_id)):
                continue
            groups.setdefault((each.receiver, each.event in NOTICES), []).append(each)
        return tuple(
            WebhookReceiver(
                receiver=receiver,
                of_inbox=of_inbox,
                deliveries=len(sent),
                open=sum(each.state.is_open for each in sent),
                failed=sum(each.state is DeliveryState.FAILED for each in sent),
                last=sent[0],
            )
            for (receiver, of_inbox), sent in groups.items()
        )[:limit]

    def _of(self, organization_id: OrganizationId, *, has_notices: bool) -> list[WebhookDelivery]:
        found = (stored.delivery for stored in self._state.deliveries.values())
        return [
            each
            for each in found
            if each.organization_id == organization_id and (has_notices or each.event not in NOTICES)
        ]


def _order(delivery: WebhookDelivery) -> SortKey:
    return by_time(delivery.created_at, delivery.id)
