"""A request whose head its connection has sent before is answered like any other, and not parsed again."""

import asyncio
from contextlib import suppress

import pytest
from pytest_mock import MockerFixture

from interfaces.joined_writes import JoiningHttpProtocol
from interfaces.whole_requests import WholeRequestProtocol
from tests.unit.interfaces.served_requests import App, posted, served

ONE, OTHER = posted(b"abc"), posted(b"xyz")
CHUNKED = b"POST /mcp HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
REPEATED = {
    "the same again": [ONE, ONE, ONE],
    "another body": [ONE, OTHER, ONE],
    "another length": [ONE, posted(b"abcd"), ONE, posted(b"abcd")],
    "another header": [ONE, posted(b"abc", extra=b"X-A: b\r\n"), ONE],
    "in parts": [ONE, ONE[:20], ONE[20:], ONE, ONE[:-1], ONE[-1:], ONE],
    "two at once": [ONE, ONE + OTHER, ONE],
    "one and a half at once": [ONE, ONE + OTHER[:30], OTHER[30:], ONE],
    "half of one, then one and a half": [ONE, ONE[:30], ONE[30:] + OTHER[:30], OTHER[30:], ONE],
    "line ends between": [ONE, ONE + b"\r\n", ONE, b"\r\n", ONE],
    "chunks": [CHUNKED, CHUNKED, ONE, CHUNKED],
    "nothing in it": [posted(b""), posted(b""), ONE],
    "asking whether to go on": [ONE, *[posted(b"abc", extra=b"Expect: 100-continue\r\n")] * 2, ONE],
    "asking for another protocol": [ONE, *[posted(b"abc", extra=b"Upgrade: h2c\r\n")] * 2, ONE],
    "two lengths": [ONE, posted(b"abc", extra=b"Content-Length: 3\r\n")],
    "a length and chunks": [ONE, CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1)],
    "an older HTTP": [ONE, ONE.replace(b"HTTP/1.1", b"HTTP/1.0")],
    "a stream": [posted(b"stream"), posted(b"stream"), ONE, ONE],
    "an answer in parts": [posted(b"parts"), posted(b"parts")],
    "a fault": [posted(b"crash"), posted(b"crash")],
    "not the last one's path": [ONE, posted(b"abc", path=b"/abc"), ONE],
    "the last one": [ONE, ONE, posted(b"abc", extra=b"Connection: close\r\n")],
    "closed by the application": [ONE, posted(b"close")],
    "what is no HTTP": [ONE, b"no HTTP at all\r\n\r\n"],
    "a body like a head": [posted(ONE), posted(ONE), ONE],
}


class Observed:
    """What has become of a connection so far, for who waits until the server has nothing more to do."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.heard = 0
        self.is_over = False
        self.is_answering = False

    async def at_rest(self, sent: int) -> None:
        """Until so many bytes were read, and answered if they were a whole request; or the connection is over."""
        while not self.is_over and (self.heard < sent or self.is_answering):
            self.changed.clear()
            await self.changed.wait()


async def said_to(protocol: type[JoiningHttpProtocol], parts: list[bytes]) -> bytes:
    """All that a client is sent that sends these bytes, each when what came before was read, and answered if it was whole."""
    observed = Observed()

    class ObservedProtocol(protocol):  # type: ignore[misc, valid-type]  # a base that is an argument
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            observed.heard += len(data)
            observed.is_answering = bool(self.cycle) and not (self.cycle.more_body or self.cycle.response_complete)
            observed.changed.set()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            observed.is_answering = False
            observed.changed.set()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            observed.is_over = True
            observed.changed.set()

    sent = 0
    async with served(App(), ObservedProtocol) as connected:
        client = await connected()
        with suppress(ConnectionError):
            for part in [*parts, posted(b"", extra=b"Connection: close\r\n")]:
                client.writer.write(part)
                sent += len(part)
                await observed.at_rest(sent)
        with suppress(ConnectionError):
            return bytes(await client.reader.read())
    return b""


@pytest.mark.parametrize("parts", REPEATED.values(), ids=REPEATED)
async def test_a_head_that_comes_again_is_answered_as_it_was_the_first_time(parts: list[bytes]) -> None:
    assert await said_to(WholeRequestProtocol, parts) == await said_to(JoiningHttpProtocol, parts)


async def test_a_head_that_comes_again_is_not_parsed_again(mocker: MockerFixture) -> None:
    parsed = mocker.spy(WholeRequestProtocol, "on_headers_complete")
    async with served(App(), WholeRequestProtocol) as connected:
        client, another = await connected(), await connected()
        for _ in range(3):
            await client.ask(ONE)
            await client.ask(OTHER)
        assert parsed.call_count == 1
        await another.ask(ONE)
        assert parsed.call_count == 2
        await client.ask(posted(b"abc", extra=b"Authorization: Bearer other\r\n"))
        assert parsed.call_count == 3
