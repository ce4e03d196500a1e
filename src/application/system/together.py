"""Several waits at once, whose error is raised as it is."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def together(waits: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """The results in order. The first error cancels the other waits and is raised itself, not in a
    group: callers expect the ServiceError."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(wait) for wait in waits]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
