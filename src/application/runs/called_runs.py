"""Runs that are executed for runs of this worker, which called their agents as tools and wait for
them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.ids import RunId

logger = logging.getLogger(__name__)


class CalledRuns:
    """Rules:
    - A called run takes no place of the worker: its caller has one, and waits. Otherwise enough
      callers would keep every called run from starting.
    - One task at a time executes a run. Claiming decides between workers.
    - Only a process that executes runs begins any, and none once it drains.
    """

    def __init__(self) -> None:
        self._execute: Callable[[RunId], Awaitable[None]] | None = None
        self._tasks: dict[RunId, asyncio.Task[None]] = {}

    def attend(self, execute: Callable[[RunId], Awaitable[None]]) -> None:
        """Execute called runs from now on."""
        self._execute = execute

    def begin(self, run_id: RunId) -> None:
        """Execute the run, unless this process does already."""
        if self._execute is None or run_id in self._tasks:
            return
        task = asyncio.create_task(self._handle(self._execute, run_id), name=f"called run {run_id}")
        self._tasks[run_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run_id))

    async def drain(self, timeout_s: float) -> bool:
        """Begin no more runs, permanently, and wait for the others. False if some are unfinished
        after `timeout_s`."""
        self._execute = None
        tasks = tuple(self._tasks.values())
        if not tasks:
            return True
        _, unfinished = await asyncio.wait(tasks, timeout=timeout_s)
        return not unfinished

    async def _handle(self, execute: Callable[[RunId], Awaitable[None]], run_id: RunId) -> None:
        try:
            await execute(run_id)
        except Exception:
            logger.exception("called run could not be handled", extra={"run_id": run_id})
