"""Loads the HTTP client of webhooks at the first delivery, to save memory in a service without
webhooks."""

from collections.abc import Mapping

from application.system.lazy import LazyClosable
from application.webhooks.ports import WebhookSender
from domain.webhooks.delivery import Attempt


class LazyWebhookSender(LazyClosable[WebhookSender]):
    """`WebhookSender` that is loaded at the first delivery."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        return await (await self.warm()).send(url, headers, body)
