"""Bulkheads: how many calls are under way at one time, for each server and for each organization; more wait their turn.

A queue is bounded too, so that a server that is slow for everyone fills neither memory nor everybody's time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import replace

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


class Places:
    """`size` places for each key, in order of arrival; a key that nobody uses takes no memory."""

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._rooms: dict[Hashable, Room] = {}

    @property
    def in_use(self) -> int:
        """For how many keys somebody has a place, or waits for one."""
        return len(self._rooms)

    async def take(self, key: Hashable, size: int, wait_s: float, busy: str) -> "Room":
        """A place, waited for as long as `wait_s`; to be given back. Raises McpFailure BUSY with the sentence `busy` if there
        is none by then, or too many wait already."""
        room = self.take_free(key, size)
        if room is not None:
            return room
        room = self._rooms[key]
        if room.users >= size + self._max_waiting:
            raise McpFailure(McpFailureKind.BUSY, busy)
        room.users += 1
        try:
            await room.enter(wait_s, busy)
        except BaseException:
            self._left(key, room)
            raise
        return room

    def take_free(self, key: Hashable, size: int) -> "Room | None":
        """A place that is free now, to be given back; None if there is none."""
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = Room(size)
        if not room.take_free():
            return None
        room.users += 1
        return room

    @asynccontextmanager
    async def taken(self, key: Hashable, size: int, wait_s: float, busy: str) -> AsyncIterator[None]:
        """The same for a block."""
        room = await self.take(key, size, wait_s, busy)
        try:
            yield
        finally:
            self.give_back(key, room)

    def give_back(self, key: Hashable, room: "Room") -> None:
        """A place that was taken."""
        room.leave()
        self._left(key, room)

    def _left(self, key: Hashable, room: "Room") -> None:
        room.users -= 1
        if not room.users and self._rooms.get(key) is room:
            del self._rooms[key]


class Room:
    """The places for one key; `users` are those inside and those waiting."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.users = 0

    def take_free(self) -> bool:
        """Take a place, if one is free that nobody waits for."""
        if self._free <= 0 or self._waiting:
            return False
        self._free -= 1
        return True

    async def enter(self, wait_s: float, busy: str) -> None:
        """Take a place, in order of arrival. Raises McpFailure BUSY."""
        if self.take_free():
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(wait_s):
                await place
        except BaseException as exc:
            if place.done() and not place.cancelled():
                self.leave()  # it came, and so did the end of the wait
            elif place in self._waiting:
                self._waiting.remove(place)
            if isinstance(exc, TimeoutError):
                raise McpFailure(McpFailureKind.BUSY, busy) from exc
            raise

    def leave(self) -> None:
        """Hand the place to whoever has waited longest."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1


class ServerBoundConnections(WrappedConnections):
    """At most `max_concurrency` calls of a server at one time, as its configuration says."""

    def __init__(self, connections: McpConnections, *, max_waiting: int = MAX_WAITING) -> None:
        super().__init__(connections)
        self._places = Places(max_waiting)

    @property
    def places_in_use(self) -> int:
        """For how many servers somebody has a place, or waits for one."""
        return self._places.in_use

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """As the port says. Raises McpFailure BUSY."""
        key = (server.id, server.version)
        room = self._places.take_free(key, server.config.max_concurrency)
        if room is None:
            began = _now()
            busy = "The MCP server is busy: too many calls to it are under way. Nothing was sent."
            room = await self._places.take(key, server.config.max_concurrency, call.timeout_s, busy)
            call = _with_less_time(call, began)
        try:
            return await self._connections.call_tool(server, scope, call, on_progress)
        finally:
            self._places.give_back(key, room)


class OrganizationBoundConnections(WrappedConnections):
    """At most `max_calls` MCP calls of an organization at one time, over all its servers."""

    def __init__(
        self,
        connections: McpConnections,
        *,
        max_calls: int = MAX_ORGANIZATION_CALLS,
        max_waiting: int = MAX_ORGANIZATION_CALLS,
    ) -> None:
        super().__init__(connections)
        self._max_calls = max_calls
        self._places = Places(max_waiting)

    @property
    def places_in_use(self) -> int:
        """For how many organizations somebody has a place, or waits for one."""
        return self._places.in_use

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """As the port says. Raises McpFailure BUSY."""
        key = server.organization_id
        room = self._places.take_free(key, self._max_calls)
        if room is None:
            began = _now()
            busy = "The organization has too many MCP calls under way. Nothing was sent."
            room = await self._places.take(key, self._max_calls, call.timeout_s, busy)
            call = _with_less_time(call, began)
        try:
            return await self._connections.call_tool(server, scope, call, on_progress)
        finally:
            self._places.give_back(key, room)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _with_less_time(call: McpCall, began: float) -> McpCall:
    """The call, after the wait for its place was taken off its time, if there was one worth the name."""
    waited_s = _now() - began
    return call if waited_s < 0.001 else replace(call, timeout_s=max(0.0, call.timeout_s - waited_s))
