"""Waiting that ends when the client leaves."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from litestar.types import Receive

from application.runs.ports import RunOutcome
from application.runs.watch_run import WatchRun
from application.system.wakeups import Subscription
from domain.identity.api_key import Principal
from domain.ids import RunId
from interfaces.disconnects import client_left

T = TypeVar("T")


async def at_rest(
    watch_run: WatchRun, principal: Principal, run_id: RunId, receive: Receive, *, announced: RunId, woken: Subscription
) -> RunOutcome | None:
    """The run once it has ended or waits; None if the client leaves before. `woken` listens to the
    run `announced` from before its start: there is nothing to read of it before a signal."""
    is_new = run_id == announced
    waiting = watch_run.wait_for_new(principal, run_id, woken) if is_new else watch_run.wait(principal, run_id)
    return await unless_left(receive, waiting)


async def unless_left(receive: Receive, waiting: Coroutine[object, object, T]) -> T | None:
    """What `waiting` gives; None if the client leaves before. Raises what `waiting` raises."""
    answering, leaving = asyncio.create_task(waiting), asyncio.create_task(client_left(receive))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return await answering if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()
        await asyncio.wait({answering, leaving})
