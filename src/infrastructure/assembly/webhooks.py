"""Builds what sends webhooks."""

from importlib.metadata import version

from application.system.ports import Clock
from application.webhooks.ports import WebhookSender
from infrastructure.http.egress import EgressPolicy
from infrastructure.webhooks.lazy_sender import LazyWebhookSender


def webhook_sender(egress: EgressPolicy, clock: Clock) -> LazyWebhookSender:
    def load() -> WebhookSender:
        from infrastructure.webhooks.http_sender import HttpWebhookSender

        return HttpWebhookSender(egress=egress, user_agent=f"dragoman/{version('dragoman')}", clock=clock)

    return LazyWebhookSender(load)
