"""The SDK's write stream over a function."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from mcp.shared.message import SessionMessage


class MessageSink:
    """`send` lasts as long as the exchange it begins; cancelling it leaves the connection usable."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._send = send

    async def send(self, item: SessionMessage, /) -> None:
        """Sends one message."""
        await self._send(item)

    async def aclose(self) -> None:
        """The dispatcher writes no more."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As `aclose`."""
