"""Loads the HTTP client of webhooks with the first delivery: a service without webhooks need not hold one."""

from collections.abc import Mapping

from application.system.lazy import LazyClosable
from application.webhooks.ports import WebhookSender
from domain.webhooks.delivery import Attempt


class LazyWebhookSender(LazyClosable[WebhookSender]):
    """`WebhookSender` that is loaded by the first delivery."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        return await (await self.warm()).send(url, headers, body)
