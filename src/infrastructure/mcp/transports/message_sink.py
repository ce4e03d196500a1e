"""The SDK's write stream over a function, and one that notices answers to the server."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

Ask = Callable[[str, str, dict[str, Any], Mapping[str, str]], Coroutine[None, None, dict[str, Any] | None]]
"""Sends a request (id, method, params, headers): its result, or None if that is answered to the reader."""


class Writer(Protocol):
    """The SDK's write stream."""

    async def send(self, item: SessionMessage, /) -> None: ...

    async def aclose(self) -> None: ...


class AnswerWriter:
    """`inner`, with `answered` called when an answer to a request of the server has been written, or cannot be."""

    def __init__(self, inner: Writer, answered: Callable[[], None]) -> None:
        self._inner = inner
        self._answered = answered

    async def send(self, item: SessionMessage, /) -> None:
        """Sends one message; raises as `inner` does."""
        try:
            await self._inner.send(item)
        finally:
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._answered()

    async def aclose(self) -> None:
        """The dispatcher writes no more."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._inner.aclose()


class MessageSink:
    """`send` lasts as long as the exchange it begins; cancelling it leaves the connection usable."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]], ask: Ask | None = None) -> None:
        self._send = send
        self._ask = ask

    def ask(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> Coroutine[None, None, dict[str, Any] | None]:
        """Sends a request; its result, if it is there then, else it comes to the reader."""
        return (self._ask or self._sent)(request_id, method, params, headers)

    async def _sent(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any] | None:
        request = JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params)
        await self._send(SessionMessage(request, ClientMessageMetadata(headers=dict(headers))))
        return None

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
