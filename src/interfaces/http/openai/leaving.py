"""Waiting that ends when the client leaves."""

import asyncio
from collections.abc import Coroutine

from litestar.types import Receive

from interfaces.disconnects import client_left


async def unless_left(receive: Receive, waiting: Coroutine[object, object, object]) -> None:
    """Wait, but no longer than the client. Raises what `waiting` raises."""
    answering, leaving = asyncio.create_task(waiting), asyncio.create_task(client_left(receive))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            await answering
    finally:
        answering.cancel()
        leaving.cancel()
        await asyncio.wait({answering, leaving})
