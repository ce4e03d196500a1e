"""A delivery of RUN, for tests of those who look at deliveries and ask for them again."""

from application.webhooks.announcing import Announcement
from domain.ids import RunId, WebhookDeliveryId
from domain.webhooks.delivery import DeliveryState, WebhookDelivery, WebhookEvent
from tests.builders import ORG, RUN, after, numbered
from tests.doubles.state import InMemoryState
from tests.webhook_builders import RECEIVER

BODY = '{"type":"run.completed"}'


def a_delivery(
    number: int = 1,
    *,
    run_id: RunId = RUN,
    state: DeliveryState = DeliveryState.FAILED,
    attempts: int = 3,
    next_attempt_at_s: float | None = None,
    delivered_at_s: float | None = None,
) -> WebhookDelivery:
    """One that was created at that many seconds."""
    return WebhookDelivery(
        id=WebhookDeliveryId(numbered("whk", number)),
        organization_id=ORG,
        run_id=run_id,
        event=WebhookEvent.RUN_COMPLETED,
        receiver=RECEIVER,
        created_at=after(number),
        state=state,
        attempts=attempts,
        next_attempt_at=None if next_attempt_at_s is None else after(next_attempt_at_s),
        delivered_at=None if delivered_at_s is None else after(delivered_at_s),
    )


def a_state_with(*deliveries: WebhookDelivery) -> InMemoryState:
    """In-memory tables that hold these deliveries."""
    state = InMemoryState()
    state.deliveries = {delivery.id: Announcement(delivery=delivery, body=BODY) for delivery in deliveries}
    return state
