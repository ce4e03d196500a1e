"""Waits for the end of a task without its result or error."""

import asyncio
from contextlib import suppress


async def ended(task: "asyncio.Task[None]") -> None:
    """Return once the task has ended, in any way. `asyncio.wait` does this for several tasks."""
    if task.done():
        return
    over = asyncio.get_running_loop().create_future()

    def tell(_task: "asyncio.Task[None]") -> None:
        if not over.done():  # the waiting task may have been cancelled
            over.set_result(None)

    task.add_done_callback(tell)
    await over


async def cancelled(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait until it has ended. Raises what the task raised, except for its
    cancellation."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
