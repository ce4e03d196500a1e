"""Builds the webhook sender."""

from importlib.metadata import version

from application.system.ports import Clock
from application.webhooks.ports import WebhookSender
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.webhooks.lazy_sender import LazyWebhookSender


def webhook_sender(egress: EgressPolicy, proxies: Proxies, clock: Clock) -> LazyWebhookSender:
    def load() -> WebhookSender:
        from infrastructure.http.client import HttpClients
        from infrastructure.webhooks.http_sender import HttpWebhookSender

        user_agent = f"dragoman/{version('dragoman')}"
        return HttpWebhookSender(egress=egress, user_agent=user_agent, clock=clock, http=HttpClients(proxies))

    return LazyWebhookSender(load)
