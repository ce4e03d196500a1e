"""Clients that send without waiting: requests before their responses, and bodies in pieces of a byte."""

import json

import pytest

from interfaces.request_reading import MAX_CHUNKS
from tests.unit.interfaces.served_requests import App, posted, served

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
