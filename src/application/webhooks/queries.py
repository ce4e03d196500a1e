"""Reading webhook deliveries."""

from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.webhooks.ports import RunLookup, WebhookDeliveryStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import RunId
from domain.webhooks.delivery import WebhookDelivery


class ListInboxDeliveries:
    """Requires `organization.manage`: what was sent to the webhook of the organization's inbox, newest first."""

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
        found = await self._deliveries.of_run(organization_id, run_id, page)
        if not found.items and await self._runs.get(organization_id, run_id) is None:
            raise not_found("run", run_id)
        return found
