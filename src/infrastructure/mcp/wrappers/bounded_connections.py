"""Bulkheads: limit the concurrent calls of each server and of each organization. Further calls wait
in a bounded queue, so that a slow server exhausts neither memory nor time."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpReply,
    ProgressCallback,
)
from domain.mcp.server import McpServer
from infrastructure.mcp.wrappers.wrapped_connections import WrappedConnections

MAX_WAITING = 256
MAX_ORGANIZATION_CALLS = 256


class Place(Protocol):
    """A place that a call has."""

    def leave(self) -> None:
        """The call has ended."""
        ...


class Places(Protocol):
    """Bulkheads of this process or of all."""

    @property
    def in_use(self) -> int:
        """Number of keys with calls inside or waiting."""
        ...

    def try_acquire(self, key: Hashable, size: int) -> Place | None:
        """Acquire a place without waiting; None if there is none."""
        ...

    async def acquire(self, key: Hashable, size: int, wait_s: float, busy: str) -> Place:
        """Acquire a place within `wait_s`. Raises: McpFailure BUSY with the text `busy`."""
        ...


class Bulkheads:
    """A bulkhead of `size` places for each key, in order of arrival. Unused keys take no memory."""

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._bulkheads: dict[Hashable, Bulkhead] = {}

    @property
    def in_use(self) -> int:
        """Number of keys with calls inside or waiting."""
        return len(self._bulkheads)

    async def acquire(self, key: Hashable, size: int, wait_s: float, busy: str) -> "Bulkhead":
        """Acquire a place within `wait_s`; release it with `release`. Raises: McpFailure BUSY with
        the text `busy` on timeout, or when too many calls wait already."""
        bulkhead = self.try_acquire(key, size)
        if bulkhead is not None:
            return bulkhead
        bulkhead = self._bulkheads[key]
        if bulkhead.users >= size + self._max_waiting:
            raise McpFailure(McpFailureKind.BUSY, busy)
        bulkhead.users += 1
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        bulkhead.waiting.append(place)
        try:
            async with asyncio.timeout(wait_s):
                await place
        except BaseException as exc:
            if place in bulkhead.waiting:
                bulkhead.waiting.remove(place)
            # With a place that arrived together with the end of the wait, the next call gets it.
            self.release(key, bulkhead, passes_on=place.done() and not place.cancelled())
            if isinstance(exc, TimeoutError):
                raise McpFailure(McpFailureKind.BUSY, busy) from exc
            raise
        return bulkhead

    def try_acquire(self, key: Hashable, size: int) -> "Bulkhead | None":
        """Acquire a place without waiting; None if there is none."""
        bulkhead = self._bulkheads.get(key)
        if bulkhead is None:
            bulkhead = self._bulkheads[key] = Bulkhead(self, key, size)
        elif bulkhead.users >= bulkhead.size:
            return None
        bulkhead.users += 1
        return bulkhead

    @asynccontextmanager
    async def held(self, key: Hashable, size: int, wait_s: float, busy: str) -> AsyncIterator[None]:
        """Hold a place for a block."""
        bulkhead = await self.acquire(key, size, wait_s, busy)
        try:
            yield
        finally:
            self.release(key, bulkhead)

    def release(self, key: Hashable, bulkhead: "Bulkhead", *, passes_on: bool = True) -> None:
        """A call has ended: its place goes to the call that has waited longest."""
        bulkhead.users -= 1
        if bulkhead.waiting and passes_on:
            bulkhead.pass_on()
        elif not bulkhead.users and self._bulkheads.get(key) is bulkhead:
            del self._bulkheads[key]


class Bulkhead:
    """The places of one key. `users` are the calls inside and those waiting; while calls wait, all
    places are taken."""

    __slots__ = ("key", "of", "size", "users", "waiting")

    def __init__(self, of: Bulkheads, key: Hashable, size: int) -> None:
        self.of, self.key = of, key
        self.size = size
        self.users = 0
        self.waiting: deque[asyncio.Future[None]] = deque()

    def leave(self) -> None:
        """A call has ended."""
        self.of.release(self.key, self)

    def pass_on(self) -> None:
        while self.waiting:
            place = self.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return


class ServerBoundConnections(WrappedConnections):
    """At most `max_concurrency` concurrent calls per server (a setting of the server)."""

    def __init__(self, connections: McpConnections, *, places: Places) -> None:
        super().__init__(connections)
        self._places = places

    @property
    def places_in_use(self) -> int:
        """Number of servers with calls inside or waiting."""
        return self._places.in_use

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Raises: McpFailure BUSY, besides those of the port."""
        key = (server.id, server.version)
        place = self._places.try_acquire(key, server.config.max_concurrency)
        if place is None:
            began = _now()
            busy = "The MCP server is busy: too many calls to it are under way. Nothing was sent."
            place = await self._places.acquire(key, server.config.max_concurrency, call.timeout_s, busy)
            call = _with_less_time(call, began)
        try:
            return await self._connections.call_tool(server, scope, call, on_progress)
        finally:
            place.leave()


class OrganizationBoundConnections(WrappedConnections):
    """At most `max_calls` concurrent MCP calls per organization, over all its servers."""

    def __init__(
        self,
        connections: McpConnections,
        *,
        places: Places,
        max_calls: int = MAX_ORGANIZATION_CALLS,
    ) -> None:
        super().__init__(connections)
        self._max_calls = max_calls
        self._places = places

    @property
    def places_in_use(self) -> int:
        """Number of organizations with calls inside or waiting."""
        return self._places.in_use

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Raises: McpFailure BUSY, besides those of the port."""
        key = server.organization_id
        place = self._places.try_acquire(key, self._max_calls)
        if place is None:
            began = _now()
            busy = "The organization has too many MCP calls under way. Nothing was sent."
            place = await self._places.acquire(key, self._max_calls, call.timeout_s, busy)
            call = _with_less_time(call, began)
        try:
            return await self._connections.call_tool(server, scope, call, on_progress)
        finally:
            place.leave()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _with_less_time(call: McpCall, began: float) -> McpCall:
    """Subtract the time spent waiting for a place from the call's timeout."""
    waited_s = _now() - began
    return call if waited_s < 0.001 else replace(call, timeout_s=max(0.0, call.timeout_s - waited_s))
