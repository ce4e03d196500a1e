"""Reading webhook deliveries."""

from dataclasses import replace

from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.webhooks.ports import (
    DeliveryFilter,
    DeliveryReports,
    RunLookup,
    WebhookDeliveryStore,
    WebhookReceiver,
)
from domain.errors import Violation, invalid, not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import RunId
from domain.webhooks.delivery import WebhookDelivery

MAX_RECEIVERS = 200
_ALL = DeliveryFilter()


class ListDeliveries:
    """Any role may read, newest first. Those to the webhook of the inbox are left out without
    `organization.manage`.

    Raises: ServiceError delivery_times_invalid, and for an invalid cursor.
    """

    def __init__(self, *, delivery_reports: DeliveryReports) -> None:
        self._reports = delivery_reports

    async def execute(
        self, principal: Principal, wanted: DeliveryFilter = _ALL, page: PageRequest = FIRST_PAGE
    ) -> Page[WebhookDelivery]:
        principal.require(Role.VIEWER)
        if wanted.since is not None and wanted.until is not None and wanted.since > wanted.until:
            wrong = Violation(path="since", message="must not be after until")
            raise invalid("delivery_times_invalid", "The period ends before it begins.", wrong)
        has_notices = wanted.has_notices and principal.may(Permission.ORGANIZATION_MANAGE)
        return await self._reports.page(
            principal.organization_id, replace(wanted, has_notices=has_notices), page.seen_by(principal)
        )


class ListWebhookReceivers:
    """Any role may read: the receivers of the newest deliveries, the last used first. The webhook
    of the inbox is left out without `organization.manage`."""

    def __init__(self, *, delivery_reports: DeliveryReports) -> None:
        self._reports = delivery_reports

    async def execute(self, principal: Principal) -> tuple[WebhookReceiver, ...]:
        principal.require(Role.VIEWER)
        has_notices = principal.may(Permission.ORGANIZATION_MANAGE)
        return await self._reports.receivers(
            principal.organization_id, has_notices=has_notices, limit=MAX_RECEIVERS, teams=principal.visible_teams
        )


class ListInboxDeliveries:
    """Requires `organization.manage`: what was sent to the webhook of the organization's inbox,
    newest first."""

    def __init__(self, *, deliveries: WebhookDeliveryStore) -> None:
        self._deliveries = deliveries

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[WebhookDelivery]:
        principal.require(Permission.ORGANIZATION_MANAGE)
        return await self._deliveries.of_inbox(principal.organization_id, page)


class ListWebhookDeliveries:
    """Any role may read; newest first. Only the host of the webhook's URL is shown, and its secret
    never."""

    def __init__(self, *, runs: RunLookup, deliveries: WebhookDeliveryStore) -> None:
        self._runs = runs
        self._deliveries = deliveries

    async def execute(
        self, principal: Principal, run_id: RunId, page: PageRequest = FIRST_PAGE
    ) -> Page[WebhookDelivery]:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        organization_id = principal.organization_id
        if principal.visible_teams is not None:
            principal.found(await self._runs.get(organization_id, run_id), "run", run_id)
        found = await self._deliveries.of_run(organization_id, run_id, page)
        if not found.items and await self._runs.get(organization_id, run_id) is None:
            raise not_found("run", run_id)
        return found
