"""What keeps a process from doing its work, by its parts."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A part that fails (`database`, `migrations`, `queue`, `worker`, `stopping`), and a sentence on it for an operator."""

    part: str
    detail: str


class ReadinessCheck(Protocol):
    """Looks at one part."""

    async def problems(self) -> tuple[Obstacle, ...]:
        """What is not ready, in bounded time; empty when all is."""
        ...


class AttendedQueue(Protocol):
    """A run queue, as far as its consumer is concerned."""

    @property
    def attended(self) -> bool:
        """Whether somebody in this process hears of what is submitted."""
        ...


class ProcessReadiness:
    """Rules: a process that was told to stop is not ready, whatever else is; one that executes runs is ready only if it hears
    of them and each of its loops goes on; one that only answers requests needs the database alone."""

    def __init__(self, *, storage: ReadinessCheck, queue: AttendedQueue) -> None:
        self._storage = storage
        self._queue = queue
        self._loops: tuple[asyncio.Task[None], ...] = ()
        self._stopping = False

    def works(self, *loops: "asyncio.Task[None]") -> None:
        """From now on this process executes runs, by these loops, none of which ends by itself."""
        self._loops = loops
        for loop in loops:
            loop.add_done_callback(self._ended)

    def stop(self) -> None:
        """The process takes no more work."""
        self._stopping = True

    async def problems(self) -> tuple[Obstacle, ...]:
        """What is not ready."""
        if self._stopping:
            return (Obstacle(part="stopping", detail="The process was told to stop."),)
        found = await self._storage.problems()
        dead = [loop.get_name() for loop in self._loops if loop.done()]
        if dead:
            detail = f"These loops of the worker have ended: {', '.join(dead)}. Restart the process; its log says why."
            found += (Obstacle(part="worker", detail=detail),)
        if self._loops and not self._queue.attended:
            found += (Obstacle(part="queue", detail="The worker does not hear of runs that are submitted."),)
        return found

    def _ended(self, loop: "asyncio.Task[None]") -> None:
        if loop.cancelled() or self._stopping:
            return
        logger.error("a loop of the worker has ended", extra={"loop": loop.get_name()}, exc_info=loop.exception())
