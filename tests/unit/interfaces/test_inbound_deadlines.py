"""A connection is closed if a head or a body does not arrive, or if nobody uses it. It stays open
while the application is at work."""

import json

import pytest

from interfaces.inbound import InboundLimits
from tests.unit.interfaces.served_requests import App, posted, served

ONE = posted(b"abc")
HEAD = b"POST /mcp HTTP/1.1\r\nHost: here\r\n"
QUICK = InboundLimits(timeout_s=0.0, look_every_s=0.05)


@pytest.mark.parametrize("begun", [b"GET /", HEAD, HEAD + b"X-A: b\r\n"])
async def test_a_head_that_does_not_arrive_is_answered_408(begun: bytes) -> None:
    async with served(App(), QUICK) as connected:
        client = await connected()
        client.writer.write(begun)
        answer = await client.answer()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert json.loads(answer.partition(b"Timeout ")[2])["code"] == "head_timeout"
        assert await client.reader.read() == b""


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
async def test_a_connection_that_sends_no_request_is_closed(sent: bytes) -> None:
    async with served(App(), QUICK) as connected:
        client = await connected()
        client.writer.write(sent)
        assert await client.reader.read() == b""


async def test_line_ends_after_an_answer_keep_no_connection_open() -> None:
    async with served(App(), QUICK) as connected:
        client = await connected()
        await client.ask(ONE)
        client.writer.write(b"\r\n")
        assert await client.reader.read() == b""


async def test_a_body_that_does_not_arrive_is_answered_408_and_its_application_is_told() -> None:
    app = App()
    async with served(app, QUICK) as connected:
        client = await connected()
        client.writer.write(posted(b"abc")[:-1])
        answer = await client.answer()
        assert json.loads(answer.partition(b"Timeout ")[2])["code"] == "body_timeout"
        assert await client.reader.read() == b""
        await app.left.wait()


async def test_a_request_that_waits_for_the_application_has_no_deadline() -> None:
    app = App()
    async with served(app, QUICK) as connected:
        client, late = await connected(), await connected()
        client.writer.write(posted(b"leave"))
        await app.is_waiting.wait()
        for _ in range(2):
            assert await late.reader.read() == b""  # looked at, and closed
            late = await connected()
        assert not client.reader.at_eof()
        assert not app.left.is_set()


async def test_time_that_the_application_takes_before_it_reads_a_body_does_not_count() -> None:
    app, request = App(), posted(b"abc", path=b"/later")
    async with served(app, QUICK) as connected:
        client = await connected()
        client.writer.write(request[:-1])
        await app.is_waiting.wait()
        for _ in range(3):
            assert await (await connected()).reader.read() == b""  # looked at, and closed
        client.writer.write(request[-1:])
        app.may_read.set()
        assert await client.answer() == b"HTTP/1.1 200 OK POST /later 3"


async def test_once_the_application_reads_the_deadline_runs() -> None:
    app = App()
    async with served(app, QUICK) as connected:
        client = await connected()
        client.writer.write(posted(b"abc", path=b"/later")[:-1])
        await app.is_waiting.wait()
        app.may_read.set()
        answer = await client.answer()
        assert json.loads(answer.partition(b"Timeout ")[2])["code"] == "body_timeout"
        await app.left.wait()


async def test_a_response_that_has_begun_keeps_no_client_that_never_sends_its_body() -> None:
    app = App()
    async with served(app, QUICK) as connected:
        client = await connected()
        client.writer.write(posted(b"abc", path=b"/unread")[:-1])
        await app.is_waiting.wait()
        assert b"one" in await client.reader.read()  # until it is closed
        app.may_read.set()
