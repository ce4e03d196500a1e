"""An application that is made when it is first asked for."""

import asyncio
import threading
from typing import cast

from litestar.types import ASGIApp, HTTPReceiveMessage, Message, Receive, Scope, Send

from interfaces.lazy_app import LazyApp

REQUEST = cast("Scope", {"type": "http"})


async def received() -> HTTPReceiveMessage:
    raise AssertionError("nothing is read")


async def sent(_: Message) -> None:
    raise AssertionError("nothing is sent")


async def test_it_is_made_once_however_many_ask_first_and_the_loop_goes_on_meanwhile() -> None:
    allowed, making = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    made: list[ASGIApp] = []
    answered: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        answered.append(scope)

    def make() -> ASGIApp:
        loop.call_soon_threadsafe(making.set)
        assert allowed.wait(timeout=60)
        made.append(app)
        return app

    lazy = LazyApp(make)
    requests = [asyncio.create_task(lazy(REQUEST, received, sent)) for _ in range(3)]
    await asyncio.wait_for(making.wait(), 60)
    assert answered == []
    allowed.set()
    await asyncio.wait_for(asyncio.gather(*requests), 60)
    await lazy(REQUEST, received, sent)
    assert (len(made), len(answered)) == (1, 4)


async def test_what_could_not_be_made_is_tried_again_by_the_next_request() -> None:
    answered: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        answered.append(scope)

    attempts = iter([False, True])

    def make() -> ASGIApp:
        if not next(attempts):
            raise OSError("no file handle is left")
        return app

    lazy = LazyApp(make)
    failed = await asyncio.gather(lazy(REQUEST, received, sent), return_exceptions=True)
    assert isinstance(failed[0], OSError)
    await lazy(REQUEST, received, sent)
    assert len(answered) == 1
