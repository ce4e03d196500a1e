"""Webhook deliveries and signing keys as JSON."""

from typing import TypedDict

from application.webhooks.create_webhook_key import CreatedWebhookKey
from domain.threads.message_json import timestamp
from domain.webhooks.delivery import WebhookDelivery


class WebhookDeliveryView(TypedDict):
    """A delivery in progress. `receiver` is the host and port of the webhook's URL; the rest is
    never shown. `last_status` and `last_error` are from the latest attempt."""

    id: str
    run_id: str
    event: str
    receiver: str
    state: str
    attempts: int
    last_status: int | None
    last_error: str | None
    created_at: str
    next_attempt_at: str | None
    delivered_at: str | None


class WebhookDeliveryPage(TypedDict):
    """A page of deliveries; `next_cursor` is null on the last one."""

    data: list[WebhookDeliveryView]
    next_cursor: str | None


class CreatedWebhookKeyView(TypedDict):
    """A new signing key; `secret` is shown only once. The previous key also signs until
    `former_signs_until`."""

    secret: str
    created_at: str
    former_signs_until: str | None


def webhook_delivery_view(delivery: WebhookDelivery) -> WebhookDeliveryView:
    return {
        "id": delivery.id,
        "run_id": delivery.run_id,
        "event": delivery.event.value,
        "receiver": delivery.receiver,
        "state": delivery.state.value,
        "attempts": delivery.attempts,
        "last_status": delivery.last_status,
        "last_error": delivery.last_error,
        "created_at": timestamp(delivery.created_at),
        "next_attempt_at": None if delivery.next_attempt_at is None else timestamp(delivery.next_attempt_at),
        "delivered_at": None if delivery.delivered_at is None else timestamp(delivery.delivered_at),
    }


def created_webhook_key_view(created: CreatedWebhookKey) -> CreatedWebhookKeyView:
    until = created.former_signs_until
    return {
        "secret": created.key.secret,
        "created_at": timestamp(created.key.created_at),
        "former_signs_until": None if until is None else timestamp(until),
    }
