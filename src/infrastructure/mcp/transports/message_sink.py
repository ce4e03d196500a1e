"""The SDK's write stream over a function, and one that observes replies to the server."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

Ask = Callable[[str, str, dict[str, Any], Mapping[str, str]], Coroutine[None, None, dict[str, Any] | None]]
"""Sends a request (id, method, params, headers); returns the result, or None if the reader receives
it."""


class Writer(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...

    async def aclose(self) -> None: ...


class AnswerWriter:
    """`inner`, with `answered` called after each reply to a request of the server, written or
    failed."""

    def __init__(self, inner: Writer, answered: Callable[[], None]) -> None:
        self._inner = inner
        self._answered = answered

    async def send(self, item: SessionMessage, /) -> None:
        try:
            await self._inner.send(item)
        finally:
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._answered()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._inner.aclose()


class MessageSink:
    """`send` lasts as long as its exchange; cancelling it leaves the connection usable."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]], ask: Ask | None = None) -> None:
        self._send = send
        self._ask = ask

    def ask(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> Coroutine[None, None, dict[str, Any] | None]:
        """Send a request; returns the result if it is available, else the reader receives it."""
        return (self._ask or self._sent)(request_id, method, params, headers)

    async def _sent(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any] | None:
        request = JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params)
        await self._send(SessionMessage(request, ClientMessageMetadata(headers=dict(headers))))
        return None

    async def send(self, item: SessionMessage, /) -> None:
        await self._send(item)

    async def aclose(self) -> None:
        """The dispatcher has stopped writing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing to release."""
