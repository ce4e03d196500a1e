"""Loads what sends webhooks when the first one is sent: a service without any need not hold an HTTP client."""

from collections.abc import Callable, Mapping

from application.webhooks.ports import WebhookSender
from domain.webhooks.delivery import Attempt


class LazyWebhookSender:
    """The `WebhookSender` port, by another one that is opened at the first use."""

    def __init__(self, open_sender: Callable[[], WebhookSender]) -> None:
        self._open = open_sender
        self._sender: WebhookSender | None = None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Attempt:
        """By the one below."""
        if self._sender is None:
            self._sender = self._open()
        return await self._sender.send(url, headers, body)

    async def close(self) -> None:
        """Close what was opened."""
        if self._sender is not None:
            await self._sender.close()
            self._sender = None
