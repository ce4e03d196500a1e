"""A service ends orderly at a signal, also at one that comes before it answers requests."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from litestar import Litestar, Request, get
from litestar.response import Stream

from domain.ids import RunId
from interfaces.http_server import HttpServer, listening
from interfaces.request_notes import RequestNotes, put_notes
from tests.builders import RUN


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


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("run_id", [None, RUN])
async def test_a_request_that_does_not_end_before_a_stop_is_answered_503_with_the_run_it_waits_for(
    run_id: RunId | None,
) -> None:
    waits = asyncio.Event()

    @get("/wait", media_type="text/plain")
    async def wait(request: Request[Any, Any, Any]) -> str:
        put_notes(request.scope, RequestNotes(request_id="req_1", waits_for=run_id))
        waits.set()
        await asyncio.get_running_loop().create_future()
        return ""

    server = HttpServer(Litestar([wait]))
    with listening("127.0.0.1", 0, change="") as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            asking = asyncio.create_task(client.get("/wait"))
            await asyncio.wait_for(waits.wait(), 60)
            server.should_exit = True
            response = await asking
        await asyncio.wait_for(serving, 60)

    assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
    assert (response.headers["retry-after"], response.headers["connection"]) == ("1", "close")
    problem = response.json()
    assert (problem["code"], problem["status"], problem.get("run_id")) == ("service_stopping", 503, run_id)


@pytest.mark.requirement("E7")
async def test_a_stream_that_does_not_end_before_a_stop_is_cut_and_gets_no_second_answer() -> None:
    @get("/stream")
    async def stream() -> Stream:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"one"
            await asyncio.get_running_loop().create_future()

        return Stream(pieces(), media_type="text/plain")

    server = HttpServer(Litestar([stream]))
    with listening("127.0.0.1", 0, change="") as listener:
        port = listener.getsockname()[1]
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: here\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"one"), 60)
        server.should_exit = True
        rest = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        await asyncio.wait_for(serving, 60)

    assert head.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1" not in rest
