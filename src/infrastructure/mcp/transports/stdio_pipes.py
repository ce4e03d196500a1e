"""The SDK's message streams over the pipes of a stdio server (asyncio only), by futures instead of
tasks: nothing to cancel, nothing to leak. Used by `stdio.py`."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from infrastructure.mcp.faults import FLOODED, TransportFailedError
from infrastructure.mcp.pace import MESSAGE, REFUSED, REPORT, Pace
from infrastructure.mcp.transports.pipes import WritePipe
from infrastructure.mcp.transports.value_count import MAX_VALUES

DEFAULT_MAX_BYTES = 4 * 1024 * 1024
MAX_ITEMS = 64
"""Limit of items waiting for the reader."""
_IN_A_ROW = 32


class MessageReader:
    """The SDK's read stream, for one reader. Ends with the connection.

    - When it `is_full` or its `pace` is used up, its writer stops reading from the server.
    - At most `requests_at_a_time` requests of the server are in progress; each ends with
      `answered`.
    - `on_empty` is called when all items were taken, and when the reader leaves.
    """

    def __init__(
        self,
        on_empty: Callable[[], None] = lambda: None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        pace: Pace | None = None,
        request_cost: float = MESSAGE,
    ) -> None:
        """`request_cost`: of a request of the server, with our answer."""
        self._on_empty = on_empty
        self._max_bytes = max_bytes
        self._items: deque[SessionMessage | Exception] = deque()
        self._bytes = 0
        self._room = asyncio.Event()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self._requests = 0
        self._taken_in_a_row = 0
        self._request_cost = request_cost
        self.pace = pace or Pace()
        self.closed = False
        """Whether the reader left; later items are dropped."""
        self.requests_at_a_time: int | None = None
        """None disables the limit of requests in progress."""
        self.tap: Callable[[SessionMessage | Exception], bool] | None = None
        """Sees each item first, and consumes those for which it returns True."""
        self.answers: Callable[[int | str, dict[str, Any]], bool] | None = None
        """Receives each result first; True consumes it, and no item is built."""
        self.is_list: Callable[[int | str], bool] = lambda _call_id: False
        """Whether the request asked for a list of tools."""

    @property
    def is_full(self) -> bool:
        """Whether to stop adding items."""
        return len(self._items) >= MAX_ITEMS or self._bytes > self._max_bytes

    def settled(self, call_id: int | str, result: dict[str, Any]) -> bool:
        """Whether a result was delivered to its call."""
        return not self.closed and self.answers is not None and self.answers(call_id, result)

    def put(self, item: SessionMessage | Exception, size: int = 0, values: int = 0) -> None:
        """Add an item of `size` bytes; `values` are the JSON values of a large one."""
        if self.closed:
            return
        if self.tap is not None and self.tap(item):
            if _is_reply(item):
                self.pace.charge_reply(size, values, is_refused=values > MAX_VALUES)
            else:
                self.pace.spend(REPORT, size)
            return
        cost = self._request_cost if _is_request(item) else MESSAGE
        self.pace.spend(cost, size * REFUSED if isinstance(item, Exception) else size)
        self._items.append(item)
        self._bytes += size
        self._wake()

    async def room(self) -> None:
        """Wait until items may be added. Raises TransportFailedError if the server floods."""
        while self.is_full and not self.closed:
            self._room.clear()
            await self._room.wait()
        if not self.closed and self.pace.take_flood():
            raise TransportFailedError(FLOODED)
        if not self.closed:
            await self.pace.wait()

    def answered(self) -> None:
        """One of the server's requests in progress has ended."""
        self._requests = max(0, self._requests - 1)
        self._wake()

    def end(self) -> None:
        """Add no more items: the reader receives the remaining ones, then the end of the stream."""
        self._ended = True
        self._wake()

    async def receive(self) -> SessionMessage | Exception:
        """The next item. Raises anyio.EndOfStream, anyio.ClosedResourceError,
        anyio.BusyResourceError."""
        if self._taken_in_a_row >= _IN_A_ROW:
            self._taken_in_a_row = 0
            await asyncio.sleep(0)  # tasks deliver the taken items: let them run
        while not self._items or self._is_held_back(self._items[0]):
            if self.closed:
                raise anyio.ClosedResourceError
            if self._ended:
                raise anyio.EndOfStream
            if self._waiting is not None:
                raise anyio.BusyResourceError("receiving from")
            if not self._items:
                self._on_empty()
            self._taken_in_a_row = 0
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        self._taken_in_a_row += 1
        return self._take()

    def _is_held_back(self, item: SessionMessage | Exception) -> bool:
        limit = self.requests_at_a_time
        return limit is not None and self._requests >= limit and _is_request(item)

    def _take(self) -> SessionMessage | Exception:
        item = self._items.popleft()
        if not self._items:
            self._bytes = 0
        if self.requests_at_a_time is not None and isinstance(item, SessionMessage) and _is_request(item):
            self._requests += 1
            item.metadata = ServerMessageMetadata(on_request_unanswered=self._unanswered)
        self._room.set()
        return item

    async def _unanswered(self) -> None:
        """The server cancelled its request."""
        self.answered()

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        self._items.clear()
        self._on_empty()
        self._room.set()
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
        """Raises as `WritePipe.write`."""
        await self._pipe.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def ask(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Write a request, whose reply arrives at the reader. Raises as `send`."""
        request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        await self._pipe.write(msgspec.json.encode(request) + b"\n")
        return None

    async def aclose(self) -> None:
        """Close the server's stdin once accepted data is written."""
        self._pipe.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pipe.close()


def _is_request(item: SessionMessage | Exception) -> bool:
    return isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest)


def _is_reply(item: SessionMessage | Exception) -> bool:
    return isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError)
