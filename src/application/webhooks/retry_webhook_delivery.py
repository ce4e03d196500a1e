"""RetryWebhookDelivery: send a delivery again, in any state."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.system.ports import Clock, IdSource
from application.webhooks.ports import WebhookDeliveryStore
from domain.audit.event import AuditAction
from domain.errors import conflict, existing
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import WebhookDeliveryId
from domain.webhooks.delivery import WebhookDelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWebhookDeliveryCommand:
    principal: Principal
    delivery_id: WebhookDeliveryId


class RetryWebhookDelivery:
    """Rules:
    - Requires `operator`.
    - The delivery is sent at once, with the same id and body, and with a new round of attempts. A
      delivered one can be sent again too.
    - Audited as `webhook_delivery.retried`.

    Raises: ServiceError role_insufficient, webhook_delivery_not_found,
    webhook_delivery_in_progress.
    """

    def __init__(self, *, deliveries: WebhookDeliveryStore, clock: Clock, ids: IdSource) -> None:
        self._deliveries = deliveries
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RetryWebhookDeliveryCommand) -> WebhookDelivery:
        principal = command.principal
        principal.require(Permission.WEBHOOKS_RETRY)
        seen = existing(
            await self._deliveries.get(principal.organization_id, command.delivery_id, teams=principal.visible_teams),
            "webhook delivery",
            command.delivery_id,
        )
        now = self._clock.now()
        after = seen.retried(at=now)
        audit = audit_entry(
            principal,
            AuditAction.WEBHOOK_DELIVERY_RETRIED,
            seen.id,
            ids=self._ids,
            at=now,
            run_id=seen.run_id,
            details={"run_id": seen.run_id, "event": seen.event.value, "attempts": seen.attempts},
        )
        if not await self._deliveries.retry(seen, after, audit):
            raise conflict("webhook_delivery_in_progress", f"Delivery {seen.id} is being attempted at this moment.")
        return after
