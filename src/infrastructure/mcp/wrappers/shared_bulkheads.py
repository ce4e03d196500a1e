"""Bulkheads over all processes on a database: places are permits that this process has leased. ADR
0081."""

import asyncio
from collections import deque
from collections.abc import Hashable
from contextvars import Context

from application.mcp.ports import McpFailure, McpFailureKind
from application.system.shared_permits import Permits, SharedPermits
from domain.errors import ServiceError

REST_RENEWALS = 12
"""Places without calls are given back after so many renewals of permits: about a minute."""
ASK_AGAIN_S = 0.25
"""Between two questions for a place while calls wait."""


class SharedBulkhead:
    """The places of one key in this process: calls inside, and those waiting in order of
    arrival."""

    __slots__ = ("asking", "freed", "inside", "key", "of", "owes", "permits", "rested", "waiting", "yields")

    def __init__(self, of: "SharedBulkheads", key: Hashable, limited: str, limit: int) -> None:
        self.of, self.key = of, key
        self.inside = 0
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.asking: asyncio.Task[None] | None = None
        self.freed = asyncio.Event()
        self.owes = self.yields = False
        self.rested = 0
        self.permits = Permits(limited, limit, spare=self._spare, freed=self.freed.set)

    def leave(self) -> None:
        """A call has ended: its place goes to the call that has waited longest, or to another
        process that asked."""
        self.inside -= 1
        self.rested = 0
        self.of.left(self)

    def _spare(self, is_wanted: bool) -> None:
        self.of.spare(self, is_wanted)


class SharedBulkheads:
    """Rules:
    - A call takes a place that this process has. Without one it waits; the process leases more, as
      many as wait and at least as many as it has.
    - Spare places are given back when another process asks, and after a minute without calls.
      Without spare ones the next place that becomes free is given back.
    - At most `max_waiting` calls wait for a key in this process.
    """

    def __init__(self, kind: str, max_waiting: int, *, permits: SharedPermits) -> None:
        self._kind = kind
        self._max_waiting = max_waiting
        self._permits = permits
        self._bulkheads: dict[Hashable, SharedBulkhead] = {}

    @property
    def in_use(self) -> int:
        """Number of keys with calls inside or waiting."""
        return sum(1 for bulkhead in self._bulkheads.values() if bulkhead.inside or bulkhead.waiting)

    def try_acquire(self, key: Hashable, size: int) -> SharedBulkhead | None:
        """Acquire a place without waiting; None if this process has none."""
        bulkhead = self._bulkheads.get(key)
        if bulkhead is None or bulkhead.inside >= bulkhead.permits.held or bulkhead.waiting:
            return None
        bulkhead.inside += 1
        return bulkhead

    async def acquire(self, key: Hashable, size: int, wait_s: float, busy: str) -> SharedBulkhead:
        """Acquire a place within `wait_s`; give it up with `leave`. Raises: McpFailure BUSY with
        the text `busy` on timeout, or when too many calls wait already."""
        bulkhead = self._bulkheads.get(key) or self._new(key, size)
        if len(bulkhead.waiting) >= self._max_waiting:
            raise McpFailure(McpFailureKind.BUSY, busy)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        bulkhead.waiting.append(place)
        if bulkhead.asking is None:
            asking = self._ask(bulkhead)
            # Without the context of this call: the places are for those of other runs, too.
            bulkhead.asking = asyncio.get_running_loop().create_task(asking, context=Context())
        try:
            async with asyncio.timeout(wait_s):
                await place
        except BaseException as exc:
            if place in bulkhead.waiting:
                bulkhead.waiting.remove(place)
            elif place.done() and not place.cancelled():
                bulkhead.leave()
            if isinstance(exc, TimeoutError):
                raise McpFailure(McpFailureKind.BUSY, busy) from exc
            raise
        return bulkhead

    def left(self, bulkhead: SharedBulkhead) -> None:
        """A place is free."""
        if bulkhead.owes and bulkhead.permits.held > bulkhead.inside:
            bulkhead.owes, bulkhead.yields = False, True
            self._permits.give_back(bulkhead.permits, 1)
        self._pass_on(bulkhead)

    def _new(self, key: Hashable, size: int) -> SharedBulkhead:
        named = "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
        bulkhead = self._bulkheads[key] = SharedBulkhead(self, key, f"{self._kind}/{named}", size)
        self._permits.add(bulkhead.permits)
        return bulkhead

    async def _ask(self, bulkhead: SharedBulkhead) -> None:
        """Lease places as long as calls wait."""
        permits = bulkhead.permits
        try:
            while bulkhead.waiting:
                if bulkhead.yields:  # to the process for which a place was given back
                    bulkhead.yields = False
                    await _set_or_after(bulkhead.freed, ASK_AGAIN_S)
                try:
                    leased = await self._permits.lease(permits, max(len(bulkhead.waiting), permits.held))
                except ServiceError:
                    leased = 0  # the calls wait for the database, as long as they may
                self._pass_on(bulkhead)
                if leased or not bulkhead.waiting:
                    continue
                if permits.held < permits.limit:
                    self._permits.want(permits)
                await _set_or_after(bulkhead.freed, ASK_AGAIN_S)
        finally:
            bulkhead.asking = None

    def _pass_on(self, bulkhead: SharedBulkhead) -> None:
        while bulkhead.waiting and bulkhead.inside < bulkhead.permits.held:
            place = bulkhead.waiting.popleft()
            if not place.done():
                place.set_result(None)
                bulkhead.inside += 1

    def spare(self, bulkhead: SharedBulkhead, is_wanted: bool) -> None:
        """Give back places that are not used, or owe one."""
        unused = bulkhead.permits.held - bulkhead.inside
        if is_wanted:
            bulkhead.owes = unused <= 0 < bulkhead.permits.held
            self._permits.give_back(bulkhead.permits, unused)
        elif not bulkhead.inside and not bulkhead.waiting:
            if bulkhead.rested >= REST_RENEWALS:
                self._permits.give_back(bulkhead.permits, unused)
                if self._permits.removed(bulkhead.permits):
                    del self._bulkheads[bulkhead.key]
            bulkhead.rested += 1


async def _set_or_after(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, or for the seconds; then clear it."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
    finally:
        event.clear()
