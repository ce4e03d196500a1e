"""Waiting until a task is over, where neither its result nor its failure is of interest."""

import asyncio
from contextlib import suppress


async def ended(task: "asyncio.Task[None]") -> None:
    """Returns once the task is over, however it ended. What `asyncio.wait` does for any number of them."""
    if task.done():
        return
    over = asyncio.get_running_loop().create_future()

    def tell(_task: "asyncio.Task[None]") -> None:
        if not over.done():  # whoever waited may have been cancelled
            over.set_result(None)

    task.add_done_callback(tell)
    await over


async def cancelled(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait until it is over. Raises what the task raised, except for its cancellation."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
