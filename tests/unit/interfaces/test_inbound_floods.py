"""Clients that send without waiting: requests before their responses, and bodies in pieces of a
byte or beside others."""

import json
from typing import Any

import pytest

from interfaces.inbound import InboundLimits
from interfaces.request_reading import MAX_CHUNKS
from tests.unit.interfaces.served_requests import App, Receive, Send, posted, served

ONE = posted(b"a")
CHUNKED = b"POST /mcp HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.requirement("C6")
async def test_a_connection_ends_whose_client_sends_more_requests_than_it_awaits_responses_for() -> None:
    app = App()
    async with served(app) as connected:
        client = await connected()
        client.writer.write(posted(b"leave") + ONE * 100)
        assert await client.reader.read() == b""
        assert app.requests <= 1
        assert (await (await connected()).ask(*[ONE] * 100))[-1] == b"HTTP/1.1 200 OK POST /mcp 1"


@pytest.mark.requirement("C6")
async def test_a_body_of_too_many_chunks_is_refused() -> None:
    app = App()
    async with served(app) as connected:
        client = await connected()
        client.writer.write(CHUNKED + b"1\r\na\r\n" * (MAX_CHUNKS + 1))
        answer = await client.answer()
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert json.loads(answer[answer.index(b"{") :])["code"] == "too_many_chunks"
        body = b"1\r\na\r\n" * (MAX_CHUNKS - 1) + b"0\r\n\r\n"
        assert await (await connected()).ask(CHUNKED + body) == [b"HTTP/1.1 200 OK POST /mcp %d" % (MAX_CHUNKS - 1)]


class LongStreams(App):
    """Answers each request with a stream that stays open."""

    async def _read_and_answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"open", "more_body": True})
        await self.left.wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@pytest.mark.requirement("C6")
async def test_large_bodies_are_accepted_beside_open_streams_of_earlier_ones() -> None:
    app = LongStreams()
    async with served(app, InboundLimits(body_bytes=1_000_000)) as connected:
        try:
            for _ in range(2):
                client = await connected()
                client.writer.write(posted(b"x" * 3_000_000))
                head = await client.reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 OK")
        finally:
            app.left.set()
