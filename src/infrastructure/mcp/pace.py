"""Share of the event loop that one server may use: a burst, then a steady rate; beyond it, reading
waits, or the next connection or list. It is of the server, not of a connection: a new connection
has no new burst."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import McpServerId, OrganizationId

logger = logging.getLogger(__name__)

BURST: Final = 250.0
RATE: Final = 100.0
"""Messages per second after the burst; one takes up to a millisecond."""
MESSAGE: Final = 1.0
"""Cost of a notification, which a task delivers."""
REQUEST: Final = 4.0
"""Cost of a server's request over HTTP, where the answer is a request of ours."""
REPORT: Final = 0.05
"""Cost of progress or a log message of a call."""
NOISE: Final = 0.02
"""Cost of a line or an event that is not a message."""
CONNECTION: Final = 2.0
PROCESS: Final = 10.0
"""Cost of a connection over HTTP, and of one to a server that is started."""
PAGE: Final = 4.0
TOOL: Final = 0.2
"""Cost of a page of a list, and of each tool in it, which is read, checked, compared and stored."""
FLOOD_S: Final = 60.0
"""A server that uses up its rate for unasked messages for this time floods."""
LEAST_PAUSE_S: Final = 0.01
"""An event loop that woke for each of many cheap messages would do little else."""
FREE_BYTES: Final = 16 * 1024
"""Replies up to this size are free."""
DROPPED: Final = 4
"""Bytes that are dropped while they arrive cost this part of others: most is taking them from the
connection."""
REFUSED: Final = 4
"""What is not taken, since it is too much, costs so many times as much as what is."""
_LISTED_TOO_OFTEN: Final = "The tools of the MCP server were listed too often. Nothing was sent."
_MOST_FAILURES: Final = 5
_LONGEST_PAUSE_S: Final = 3.0
"""Connections that fail delay the next for no longer, so that a server that is back is soon
connected."""
_FORGET_S: Final = 1.0
_BYTES_PER_MESSAGE: Final = 16 * 1024
_VALUES_PER_MESSAGE: Final = 400


class Budget:
    """A burst, and what comes back at the rate. Nothing delays for longer than `longest_s`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, longest_s: float = math.inf) -> None:
        self._loop = loop
        self._least = -longest_s * RATE
        self._left = BURST
        self._at = loop.time()

    def take(self, cost: float) -> None:
        now = self._loop.time()
        self._left = max(self._least, min(BURST, self._left + (now - self._at) * RATE) - cost)
        self._at = now

    @property
    def left(self) -> float:
        """When it was last taken from."""
        return self._left

    @property
    def is_full(self) -> bool:
        return self._left + (self._loop.time() - self._at) * RATE >= BURST

    @property
    def delay_s(self) -> float:
        """Seconds until something is left; 0 if it is."""
        if self._left >= 0:
            return 0.0
        left_s = -self._left / RATE - (self._loop.time() - self._at)
        return max(left_s, LEAST_PAUSE_S) if left_s > 0 else 0.0


class Pace:
    """`ids` name the server in the log. What was read delays reading; `work`, connections and
    lists, delays the next connection and list, but no call. `on_charge` is called whenever
    something is charged."""

    def __init__(
        self,
        ids: Mapping[str, str] | None = None,
        *,
        flood_s: float = FLOOD_S,
        on_charge: Callable[["Pace"], None] = lambda _pace: None,
    ) -> None:
        self._on_charge = on_charge
        self._flood_s = flood_s
        loop = asyncio.get_running_loop()
        self._ids = dict(ids or {})
        self._read, self._unasked, self._work = Budget(loop), Budget(loop), Budget(loop)
        self._loop = loop
        self._failures, self._failing = 0, Budget(loop, longest_s=_LONGEST_PAUSE_S)
        self._failed_at = -math.inf
        self._calm_at = loop.time()

    def spend(self, cost: float, size: int = 0) -> None:
        """Charge for an unasked message of `size` bytes."""
        self._on_charge(self)
        cost += size / _BYTES_PER_MESSAGE
        self._read.take(cost)
        self._unasked.take(cost)
        if self._unasked.left > BURST / 2:
            self._calm_at = self._loop.time()

    def charge_reply(self, size: int, values: int = 0, *, is_refused: bool = False) -> None:
        """Charge for a reply of `size` bytes with so many JSON values."""
        if size > FREE_BYTES:
            self._on_charge(self)
            cost = max(size / _BYTES_PER_MESSAGE, values / _VALUES_PER_MESSAGE)
            self._read.take(cost * REFUSED if is_refused else cost)

    def connection_failed(self, begun_at: float) -> None:
        """Each failure in a row delays the next connection for twice as long, up to 3 s in all.
        Connections that were under way together fail once: one that began, in the time of the event
        loop, before the last failure, is not counted."""
        if begun_at < self._failed_at:
            return
        self._on_charge(self)
        self._failed_at = self._loop.time()
        self._failing.take(PROCESS * 2**self._failures)
        self._failures = min(self._failures + 1, _MOST_FAILURES)

    def connected(self) -> None:
        self._failures, self._failing = 0, Budget(self._loop, longest_s=_LONGEST_PAUSE_S)

    def charge_work(self, cost: float) -> None:
        """Charge for a connection or a list."""
        self._on_charge(self)
        self._work.take(cost)

    def take_flood(self) -> bool:
        """Whether unasked messages have used up the rate for `flood_s`, without a rest: then the
        connection is to be closed. The next one has that time again."""
        now = self._loop.time()
        if self._unasked.left > 0 or now - self._calm_at <= self._flood_s:
            return False
        self._calm_at = now
        logger.warning("an MCP server sends unasked messages without end; its connection is closed", extra=self._ids)
        return True

    @property
    def is_full(self) -> bool:
        """Whether a new pace would be the same."""
        return self._read.is_full and self._unasked.is_full and self._work.is_full and self._failing.is_full

    @property
    def delay_s(self) -> float:
        """Seconds until the server may be read; 0 with budget left."""
        return self._read.delay_s

    @property
    def work_delay_s(self) -> float:
        """Seconds until the server may be connected or listed; 0 with budget left."""
        return max(self._work.delay_s, self._failing.delay_s)

    async def wait(self) -> None:
        """Until the server may be read."""
        while (delay_s := self.delay_s) > 0:  # noqa: ASYNC110 (time passes, and others spend)
            await asyncio.sleep(delay_s)

    async def wait_to_work(self, deadline: float = math.inf) -> None:
        """Until the server may be connected or listed. Raises McpFailure BUSY if that is after
        `deadline` (event loop time)."""
        while (delay_s := self.work_delay_s) > 0:
            if self._loop.time() + delay_s > deadline:
                raise self.too_often()
            await asyncio.sleep(delay_s)

    def too_often(self) -> McpFailure:
        return McpFailure(McpFailureKind.BUSY, _LISTED_TOO_OFTEN, retry_after_s=self.work_delay_s)


class Paces:
    """The pace of each server, over all its connections. One that is as good as new, and that no
    connection has, is forgotten."""

    def __init__(self, *, flood_s: float = FLOOD_S) -> None:
        self._flood_s = flood_s
        self._known: WeakValueDictionary[McpServerId, Pace] = WeakValueDictionary()
        self._used: dict[McpServerId, Pace] = {}

    def of(self, organization_id: OrganizationId, server_id: McpServerId) -> Pace:
        pace = self._known.get(server_id)
        if pace is None:
            ids = {"organization_id": organization_id, "server_id": server_id}
            pace = Pace(ids, flood_s=self._flood_s, on_charge=partial(self._keep, server_id))
            self._known[server_id] = pace
        self._keep(server_id, pace)
        return pace

    def _keep(self, server_id: McpServerId, pace: Pace) -> None:
        if not self._used:
            self._forget_later()
        self._used[server_id] = pace

    def _forget_later(self) -> None:
        asyncio.get_running_loop().call_later(_FORGET_S, self._forget)

    def _forget(self) -> None:
        self._used = {known: pace for known, pace in self._used.items() if not pace.is_full}
        if self._used:
            self._forget_later()
