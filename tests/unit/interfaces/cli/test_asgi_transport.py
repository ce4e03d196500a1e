"""Streaming out of an ASGI app of the same process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from interfaces.cli.asgi_transport import AsgiApp, StreamingAsgiTransport

Receive = Callable[[], Awaitable[dict[str, object]]]
Send = Callable[[dict[str, object]], Awaitable[None]]
Scope = dict[str, object]


@asynccontextmanager
async def client_of(app: AsgiApp) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=StreamingAsgiTransport(app), base_url="http://app.test") as client:
        yield client


async def start(send: Send, status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})


async def piece(send: Send, text: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": more})


async def test_the_app_gets_the_request_as_it_was_sent() -> None:
    seen: dict[str, object] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope)
        seen["body"] = (await receive())["body"]
        await start(send, 201)
        await piece(send, b"made", more=False)

    async with client_of(app) as client:
        response = await client.post("/v1/a%20b/c?x=1&y=%C3%A9", content=b"hello", headers={"X-Key": "v"})

    assert (response.status_code, response.text) == (201, "made")
    assert response.headers["content-type"] == "text/plain"
    assert (seen["method"], seen["path"], seen["raw_path"]) == ("POST", "/v1/a b/c", b"/v1/a%20b/c")
    assert seen["query_string"] == b"x=1&y=%C3%A9"
    assert seen["body"] == b"hello"
    headers = seen["headers"]
    assert isinstance(headers, list)
    assert (b"x-key", b"v") in headers


async def test_pieces_arrive_while_the_app_still_runs() -> None:
    read = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        await piece(send, b"first")
        await read.wait()
        await piece(send, b"second", more=False)

    async with client_of(app) as client, client.stream("GET", "/") as response:
        pieces = response.aiter_raw()
        assert await anext(pieces) == b"first"
        read.set()
        assert [rest async for rest in pieces] == [b"second"]


async def test_an_app_far_ahead_of_its_reader_waits() -> None:
    sent = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await start(send)
        for _ in range(1000):
            await piece(send, b"x")
            sent += 1
        await piece(send, b"", more=False)

    async with client_of(app) as client, client.stream("GET", "/") as response:
        pieces = response.aiter_raw()
        await anext(pieces)
        assert sent < 100
        assert len([rest async for rest in pieces]) == 999


async def test_a_reader_that_leaves_ends_the_app() -> None:
    ended = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await start(send)
            while True:
                await piece(send, b"more")
        finally:
            ended.set()

    async with client_of(app) as client, client.stream("GET", "/") as response:
        await anext(response.aiter_raw())
    assert ended.is_set()


async def test_an_app_is_told_that_its_answer_is_over() -> None:
    told: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await start(send)
        await piece(send, b"all", more=False)
        told.append((await receive())["type"])

    async with client_of(app) as client:
        assert (await client.get("/")).text == "all"
    assert told == ["http.disconnect"]


async def test_a_cancelled_request_ends_an_app_that_has_not_answered() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with client_of(app) as client:
        request = asyncio.create_task(client.get("/"))
        await began.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
    assert ended.is_set()


async def test_an_app_that_fails_before_it_answers_fails_the_request() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError("a fault of the app")

    async with client_of(app) as client:
        with pytest.raises(LookupError):
            await client.get("/")


async def test_an_app_that_ends_without_an_answer_is_a_protocol_error() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    async with client_of(app) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/")


async def test_an_answer_that_is_cut_off_is_a_protocol_error() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        await piece(send, b"half")

    async with client_of(app) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/")
