"""The message streams the MCP SDK reads and writes over the pipes of a stdio server.

Futures instead of tasks: nothing to cancel, nothing to leak. Used by ``stdio.py``; asyncio only.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec
from mcp.shared.message import SessionMessage

from infrastructure.mcp.pipes import WritePipe


class MessageReader:
    """The SDK's read stream: what the server said, for one reader. Ends when the connection does.

    `on_empty` is called when the reader has taken everything, and when it leaves.
    """

    def __init__(self, on_empty: Callable[[], None]) -> None:
        self._on_empty = on_empty
        self._items: deque[SessionMessage | Exception] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self.closed = False
        """Whether the reader left; what arrives then is dropped."""
        self.tap: Callable[[SessionMessage | Exception], bool] | None = None
        """Sees each item first, and keeps those for which it returns True."""
        self.answers: Callable[[int | str, dict[str, Any]], bool] | None = None
        """Given each result first, of which then no item is made; True for those that somebody waited for."""

    @property
    def has_items(self) -> bool:
        """Whether something is waiting to be taken."""
        return bool(self._items)

    def settled(self, call_id: int | str, result: dict[str, Any]) -> bool:
        """Whether a result has come to the call it is for."""
        return not self.closed and self.answers is not None and self.answers(call_id, result)

    def put(self, item: SessionMessage | Exception) -> None:
        """Hands an item to the reader."""
        if not self.closed and not (self.tap is not None and self.tap(item)):
            self._items.append(item)
            self._wake()

    def end(self) -> None:
        """No more items: the reader gets what is there, then the end of the stream."""
        self._ended = True
        self._wake()

    async def receive(self) -> SessionMessage | Exception:
        """The next item. Raises anyio.EndOfStream, anyio.ClosedResourceError, anyio.BusyResourceError."""
        while not self._items:
            if self.closed:
                raise anyio.ClosedResourceError
            if self._ended:
                raise anyio.EndOfStream
            if self._waiting is not None:
                raise anyio.BusyResourceError("receiving from")
            self._on_empty()
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self._items.popleft()

    async def aclose(self) -> None:
        """The reader leaves."""
        self.close()

    def close(self) -> None:
        """The reader leaves."""
        self.closed = True
        self._items.clear()
        self._on_empty()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class MessageWriter:
    """The SDK's write stream: one message, one line."""

    def __init__(self, pipe: WritePipe) -> None:
        self._pipe = pipe

    async def send(self, item: SessionMessage, /) -> None:
        """Writes a message; raises as `WritePipe.write` does."""
        await self._pipe.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def ask(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Writes a request, whose answer comes to the reader. Raises as `send`."""
        request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        await self._pipe.write(msgspec.json.encode(request) + b"\n")
        return None

    async def aclose(self) -> None:
        """Closes the server's stdin once what was sent is written."""
        self._pipe.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pipe.close()
