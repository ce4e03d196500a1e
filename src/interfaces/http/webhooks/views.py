"""Webhook deliveries and signing keys as JSON."""

from typing import Annotated, TypedDict

from application.webhooks.create_webhook_key import CreatedWebhookKey
from application.webhooks.ports import WebhookReceiver
from domain.threads.message_json import timestamp
from domain.webhooks.delivery import DeliveryState, WebhookDelivery, WebhookEvent
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Timestamp


class WebhookDeliveryView(TypedDict):
    """A delivery in progress. `receiver` is the host and port of the webhook's URL; the rest is
    never shown. `last_status` and `last_error` are from the latest attempt."""

    id: Annotated[str, "Id of the delivery."]
    run_id: Annotated[str | None, "Id of the run; null: of something that waits without a run."]
    event: Annotated[WebhookEvent, "Type of the event."]
    receiver: Annotated[
        str, "Host and port of the webhook's URL, or the name of the secret that has the URL; the rest is never shown."
    ]
    state: Annotated[DeliveryState, "State of the delivery."]
    attempts: Annotated[int, "Number of attempts."]
    last_status: Annotated[int | None, "HTTP status of the latest attempt; null if there was no response."]
    last_error: Annotated[str | None, "Error of the latest attempt; null if it succeeded."]
    created_at: CreatedAt
    next_attempt_at: Annotated[Timestamp | None, "Time of the next attempt; null if there is none."]
    delivered_at: Annotated[Timestamp | None, "Time of the delivery; null until then."]


class WebhookDeliveryPage(TypedDict):
    """A page of deliveries; `next_cursor` is null on the last one."""

    data: Items[WebhookDeliveryView]
    next_cursor: NextCursor


class WebhookReceiverView(TypedDict):
    """A receiver of webhooks, among the 10,000 newest deliveries of the organization."""

    receiver: Annotated[
        str, "Host and port of the webhook's URL, or the name of the secret that has the URL; the rest is never shown."
    ]
    of_inbox: Annotated[bool, "Whether it is the webhook of the inbox."]
    deliveries: Annotated[int, "Number of its deliveries."]
    open: Annotated[int, "Number of those that are still attempted."]
    failed: Annotated[int, "Number of those that failed."]
    last_delivery: Annotated[WebhookDeliveryView, "The newest of its deliveries."]


class WebhookReceiversView(TypedDict):
    """Receivers, the last used first."""

    data: Annotated[list[WebhookReceiverView], "Receivers, the last used first: at most 200."]


class CreatedWebhookKeyView(TypedDict):
    """A new signing key; `secret` is shown only once. The previous key also signs until
    `former_signs_until`."""

    secret: Annotated[str, "The signing key: `whsec_…`. It is shown only once."]
    created_at: CreatedAt
    former_signs_until: Annotated[Timestamp | None, "Until then the previous key also signs; null if there was none."]


def webhook_delivery_view(delivery: WebhookDelivery) -> WebhookDeliveryView:
    return {
        "id": delivery.id,
        "run_id": delivery.run_id,
        "event": delivery.event,
        "receiver": delivery.receiver,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "last_status": delivery.last_status,
        "last_error": delivery.last_error,
        "created_at": timestamp(delivery.created_at),
        "next_attempt_at": None if delivery.next_attempt_at is None else timestamp(delivery.next_attempt_at),
        "delivered_at": None if delivery.delivered_at is None else timestamp(delivery.delivered_at),
    }


def webhook_receiver_view(receiver: WebhookReceiver) -> WebhookReceiverView:
    return {
        "receiver": receiver.receiver,
        "of_inbox": receiver.of_inbox,
        "deliveries": receiver.deliveries,
        "open": receiver.open,
        "failed": receiver.failed,
        "last_delivery": webhook_delivery_view(receiver.last),
    }


def created_webhook_key_view(created: CreatedWebhookKey) -> CreatedWebhookKeyView:
    until = created.former_signs_until
    return {
        "secret": created.key.secret,
        "created_at": timestamp(created.key.created_at),
        "former_signs_until": None if until is None else timestamp(until),
    }
