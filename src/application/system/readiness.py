"""Readiness of a process, by its parts."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A part that fails (`database`, `migrations`, `queue`, `worker`, `stopping`), and a sentence
    for operators."""

    part: str
    detail: str


class ReadinessCheck(Protocol):
    """Checks one part."""

    async def problems(self) -> tuple[Obstacle, ...]:
        """Obstacles, in bounded time; empty when all is ready."""


class AttendedQueue(Protocol):
    """A run queue, from its consumer's side."""

    @property
    def attended(self) -> bool:
        """Whether this process receives submitted runs."""


class ProcessReadiness:
    """Rules:
    - A stopping process is not ready.
    - A process that executes runs is ready only if it receives them and each of its loops runs.
    - A process that only answers requests needs only the database.
    """

    def __init__(self, *, storage: ReadinessCheck, queue: AttendedQueue) -> None:
        self._storage = storage
        self._queue = queue
        self._loops: tuple[asyncio.Task[None], ...] = ()
        self._stopping = False

    def works(self, *loops: "asyncio.Task[None]") -> None:
        """This process executes runs, by these endless loops."""
        self._loops = loops
        for loop in loops:
            loop.add_done_callback(self._ended)

    def stop(self) -> None:
        """The process accepts no more work."""
        self._stopping = True

    async def problems(self) -> tuple[Obstacle, ...]:
        if self._stopping:
            return (Obstacle(part="stopping", detail="The process is stopping."),)
        found = await self._storage.problems()
        dead = [loop.get_name() for loop in self._loops if loop.done()]
        if dead:
            detail = (
                f"These loops of the worker have ended: {', '.join(dead)}. Restart the process; its log has the reason."
            )
            found += (Obstacle(part="worker", detail=detail),)
        if self._loops and not self._queue.attended:
            found += (Obstacle(part="queue", detail="The worker does not receive submitted runs."),)
        return found

    def _ended(self, loop: "asyncio.Task[None]") -> None:
        if loop.cancelled() or self._stopping:
            return
        logger.error("a loop of the worker has ended", extra={"loop": loop.get_name()}, exc_info=loop.exception())
