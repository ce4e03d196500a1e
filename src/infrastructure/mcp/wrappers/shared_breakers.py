"""Circuit breakers over all processes on a database: open ones are stored, changes are signalled.
ADR 0081."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from typing import Protocol

from application.system.shared_permits import PermitSignals
from domain.errors import ServiceError
from domain.ids import McpServerId

logger = logging.getLogger(__name__)

CHANGED, FAILED = "mcp-breaker", "mcp-failures"
"""First words of topics: a server's breaker opened or closed; its failed calls in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBreaker:
    """An open breaker; the next call may probe the server in `pause_s`."""

    openings: int
    pause_s: float


class BreakerStates(Protocol):
    """Open breakers, on the clock of the database. Raises UNAVAILABLE `storage_unavailable`."""

    async def opened(self, server_id: McpServerId, breaker: OpenBreaker) -> None:
        """The breaker has opened."""
        ...

    async def closed(self, server_id: McpServerId) -> None:
        """The breaker has closed."""
        ...

    async def of(self, server_id: McpServerId) -> OpenBreaker | None:
        """The breaker if it is open."""
        ...

    async def probe(self, server_id: McpServerId, hold_s: float) -> bool:
        """Whether the caller may probe the server. Others may not for `hold_s` from now."""
        ...


class SharedBreakers:
    """What the breakers of this process tell those of the others, in the background, and hear from
    them.

    `changed` gets the breaker of a server, None for a closed one; `failed` the number of its
    failures in a row. Without the database each process has its own breakers.
    """

    def __init__(self, *, states: BreakerStates, signals: PermitSignals) -> None:
        self._states = states
        self._signals = signals
        self._lock = asyncio.Lock()
        self._telling: set[asyncio.Task[None]] = set()
        self.changed: Callable[[McpServerId, OpenBreaker | None], None] = lambda _id, _breaker: None
        self.failed: Callable[[McpServerId, int], None] = lambda _id, _failures: None
        signals.subscribe_prefix(CHANGED, self._heard_change)
        signals.subscribe_prefix(FAILED, self._heard_failures)

    def failures(self, server_id: McpServerId, number: int) -> None:
        """So many calls have failed in a row; 0 after an answer."""
        self._signals.wake(f"{FAILED}:{server_id}:{number}")

    def opened(self, server_id: McpServerId, breaker: OpenBreaker) -> None:
        self._tell(server_id, self._states.opened(server_id, breaker))

    def closed(self, server_id: McpServerId) -> None:
        self._tell(server_id, self._states.closed(server_id))

    def look(self, server_id: McpServerId) -> None:
        """Read whether the server's breaker is open."""
        self._begin(self._look(server_id, closes=False))

    async def may_probe(self, server_id: McpServerId, hold_s: float) -> bool:
        """Whether no other process is probing the server. If one is, `changed` gets its breaker."""
        try:
            if await self._states.probe(server_id, hold_s):
                return True
            await self._look(server_id, closes=False)
        except ServiceError:
            return True
        return False

    async def close(self) -> None:
        """Wait for what is being told."""
        while self._telling:
            await asyncio.wait(self._telling)

    def _tell(self, server_id: McpServerId, storing: Coroutine[None, None, None]) -> None:
        async def tell() -> None:
            async with self._lock:  # in order
                await storing
            self._signals.wake(f"{CHANGED}:{server_id}")

        self._begin(tell())

    def _begin(self, telling: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(_unless_away(telling), context=Context())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _look(self, server_id: McpServerId, *, closes: bool) -> None:
        breaker = await self._states.of(server_id)
        if breaker is not None or closes:
            self.changed(server_id, breaker)

    def _heard_change(self, topic: str) -> None:
        self._begin(self._look(McpServerId(topic.partition(":")[2]), closes=True))

    def _heard_failures(self, topic: str) -> None:
        server_id, _, number = topic.partition(":")[2].rpartition(":")
        self.failed(McpServerId(server_id), int(number))


async def _unless_away(telling: Coroutine[None, None, None]) -> None:
    try:
        await telling
    except ServiceError as error:
        logger.info("circuit breakers were not shared", extra={"code": error.code})
