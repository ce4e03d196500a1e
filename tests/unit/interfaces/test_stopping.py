"""A service ends orderly at a signal, also at one that comes before it answers requests."""

import asyncio
import os
import signal

import pytest
from litestar import Litestar

from interfaces.http_server import HttpServer, listening


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_before_the_first_request_is_answered_ends_the_service_like_any_later_one(
    name: signal.Signals,
) -> None:
    told: list[str] = []
    server = HttpServer(Litestar(), on_stop=lambda: told.append("stop"))
    with listening("127.0.0.1", 0, change="") as listener, server.stopped_by_signals():
        os.kill(os.getpid(), name)
        await asyncio.wait_for(server.serve(sockets=[listener]), 60)
    assert told == ["stop"]
