"""ListWebhookDeliveries: list the deliveries of a run."""

from dataclasses import dataclass

from application.system.pages import Page, PageRequest
from application.webhooks.ports import RunLookup, WebhookDeliveryStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import RunId
from domain.webhooks.delivery import WebhookDelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWebhookDeliveriesCommand:
    principal: Principal
    run_id: RunId
    page: PageRequest = PageRequest()


class ListWebhookDeliveries:
    """Any role may read; newest first. Only the host of the webhook's URL is shown, and its secret
    never."""

    def __init__(self, *, runs: RunLookup, deliveries: WebhookDeliveryStore) -> None:
        self._runs = runs
        self._deliveries = deliveries

    async def execute(self, command: ListWebhookDeliveriesCommand) -> Page[WebhookDelivery]:
        """Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        organization_id = command.principal.organization_id
        page = await self._deliveries.of_run(organization_id, command.run_id, command.page)
        if not page.items and await self._runs.get(organization_id, command.run_id) is None:
            raise not_found("run", command.run_id)
        return page
