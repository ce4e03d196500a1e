"""What a client sees of requests that are taken whole is what uvicorn's own way would show it."""

import asyncio

import pytest

from interfaces.joined_writes import JoiningHttpProtocol
from interfaces.known_headers import KnownHeaders
from interfaces.whole_requests import WholeRequest, WholeRequestProtocol
from tests.unit.interfaces.served_requests import App, posted, served

PROTOCOLS = pytest.mark.parametrize("protocol", [WholeRequestProtocol, JoiningHttpProtocol])


@PROTOCOLS
async def test_requests_of_one_connection_are_answered_each(protocol: type[JoiningHttpProtocol]) -> None:
    async with served(App(), protocol) as connected:
        client = await connected()

        answers = [
            *await client.ask(posted(b"abc")),
            *await client.ask(posted(b"abcd")),
            *await client.ask(b"GET /mcp HTTP/1.1\r\nHost: here\r\n\r\n"),
            *await client.ask(posted(b"abc", path=b"/other")),
            *await client.ask(posted(b"")),
            *await client.ask(posted(b"abc")),
        ]

    assert answers == [
        b"HTTP/1.1 200 OK POST /mcp 3",
        b"HTTP/1.1 200 OK POST /mcp 4",
        b"HTTP/1.1 200 OK GET /mcp 0",
        b"HTTP/1.1 200 OK POST /other 3",
        b"HTTP/1.1 200 OK POST /mcp 0",
        b"HTTP/1.1 200 OK POST /mcp 3",
    ]


@PROTOCOLS
async def test_each_answer_has_its_own_head(protocol: type[JoiningHttpProtocol]) -> None:
    heads = []
    async with served(App(), protocol, server_header=False, date_header=False) as connected:
        client = await connected()
        for body in (b"abc", b"1234567890", b"missing", b"missing", b"abc"):
            client.writer.write(posted(body))
            head = await client.reader.readuntil(b"\r\n\r\n")
            heads.append(head.decode("ascii").split("\r\n")[:-2])
            await client.reader.readexactly(int(heads[-1][-1].partition(": ")[2]))

    missing = ["HTTP/1.1 404 Not Found", "x-kind: missing", "content-length: 0"]
    assert heads == [
        ["HTTP/1.1 200 OK", "content-type: text/plain", "content-length: 11"],
        ["HTTP/1.1 200 OK", "content-type: text/plain", "content-length: 12"],
        missing,
        missing,
        ["HTTP/1.1 200 OK", "content-type: text/plain", "content-length: 11"],
    ]


@PROTOCOLS
async def test_requests_sent_one_behind_the_other_are_answered_in_order(protocol: type[JoiningHttpProtocol]) -> None:
    async with served(App(), protocol) as connected:
        client = await connected()

        answers = await client.ask(posted(b"a"), posted(b"bb"), posted(b"ccc", path=b"/other"), posted(b"dddd"))

    assert [answer.rpartition(b" ")[2] for answer in answers] == [b"1", b"2", b"3", b"4"]


@PROTOCOLS
async def test_a_body_that_comes_in_parts_is_taken_whole(protocol: type[JoiningHttpProtocol]) -> None:
    request = posted(b"x" * 1_000)
    async with served(App(), protocol) as connected:
        client = await connected()
        for part in (request[:10], request[10:100], request[100:]):
            client.writer.write(part)
            await client.writer.drain()

        assert await client.answer() == b"HTTP/1.1 200 OK POST /mcp 1000"


@PROTOCOLS
async def test_a_large_body_is_read_as_it_comes(protocol: type[JoiningHttpProtocol]) -> None:
    async with served(App(), protocol) as connected:
        client = await connected()

        assert await client.ask(posted(b"x" * 3_000_000), posted(b"y")) == [
            b"HTTP/1.1 200 OK POST /mcp 3000000",
            b"HTTP/1.1 200 OK POST /mcp 1",
        ]


@PROTOCOLS
async def test_a_chunked_body_is_taken_too(protocol: type[JoiningHttpProtocol]) -> None:
    request = b"POST /mcp HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    async with served(App(), protocol) as connected:
        assert await (await connected()).ask(request) == [b"HTTP/1.1 200 OK POST /mcp 5"]


@PROTOCOLS
async def test_an_answer_may_be_a_stream(protocol: type[JoiningHttpProtocol]) -> None:
    async with served(App(), protocol) as connected:
        client = await connected()

        answers = await client.ask(posted(b"stream"), posted(b"parts"), posted(b"x"))

    assert answers == [
        b"HTTP/1.1 200 OK 3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK onetwo",
        b"HTTP/1.1 200 OK POST /mcp 1",
    ]


@PROTOCOLS
async def test_a_fault_of_the_application_is_an_answer(protocol: type[JoiningHttpProtocol]) -> None:
    async with served(App(), protocol) as connected:
        assert await (await connected()).ask(posted(b"crash")) == [
            b"HTTP/1.1 500 Internal Server Error Internal Server Error"
        ]


@PROTOCOLS
async def test_what_is_not_http_is_refused(protocol: type[JoiningHttpProtocol]) -> None:
    async with served(App(), protocol) as connected:
        client = await connected()

        await client.ask(posted(b"abc"))
        (answer,) = await client.ask(b"nonsense\r\n\r\n")

        assert answer.startswith(b"HTTP/1.1 400 ")
        assert await client.reader.read() == b""


@PROTOCOLS
@pytest.mark.parametrize(
    "request_", [posted(b"abc", extra=b"Connection: close\r\n"), posted(b"close"), posted(b"abc", version=b"1.0")]
)
async def test_a_connection_ends_when_either_side_wants_that(
    protocol: type[JoiningHttpProtocol], request_: bytes
) -> None:
    async with served(App(), protocol) as connected:
        client = await connected()
        (answer,) = await client.ask(request_)

        assert answer.startswith(b"HTTP/1.1 200 OK ")
        assert await client.reader.read() == b""


@PROTOCOLS
async def test_whoever_waits_for_leave_to_send_a_body_gets_it(protocol: type[JoiningHttpProtocol]) -> None:
    head, _, body = posted(b"abc", extra=b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    async with served(App(), protocol) as connected:
        client = await connected()
        client.writer.write(head + b"\r\n\r\n")
        leave = await client.reader.readuntil(b"\r\n\r\n")
        client.writer.write(body)

        assert leave == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert await client.answer() == b"HTTP/1.1 200 OK POST /mcp 3"


@PROTOCOLS
async def test_the_application_is_told_that_its_client_has_left(protocol: type[JoiningHttpProtocol]) -> None:
    app = App()
    async with served(app, protocol) as connected:
        client = await connected()
        client.writer.write(posted(b"leave"))
        await app.is_waiting.wait()
        client.writer.close()

        await app.left.wait()


@PROTOCOLS
async def test_a_connection_that_nobody_uses_is_closed(protocol: type[JoiningHttpProtocol]) -> None:
    async with served(App(), protocol, timeout_keep_alive=0) as connected:
        client = await connected()
        await client.ask(posted(b"abc"))

        assert await client.reader.read() == b""


async def test_the_same_headers_are_the_same_object_and_others_are_not() -> None:
    app = App()
    async with served(app, WholeRequestProtocol) as connected:
        client, other = await connected(), await connected()
        await client.ask(posted(b"abc"))
        await client.ask(posted(b"xyz"))
        await client.ask(posted(b"abc", extra=b"Authorization: Bearer another\r\n"))
        await client.ask(posted(b"abc"))
        await other.ask(posted(b"abc"))

    first, same, changed, again, of_other = app.headers
    assert isinstance(first, KnownHeaders)
    assert same is first
    assert changed is not first
    assert again is not first
    assert of_other is not first
    assert of_other == first


async def test_a_timer_that_finds_a_request_at_work_leaves_its_connection_open() -> None:
    made: list[WholeRequestProtocol] = []

    class Noted(WholeRequestProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            made.append(self)

    app = App()
    async with served(app, Noted, timeout_keep_alive=3600) as connected:
        client = await connected()
        await client.ask(posted(b"abc"))
        client.writer.write(posted(b"leave"))
        await app.is_waiting.wait()
        (protocol,) = made

        protocol.timeout_keep_alive_handler()

        assert isinstance(protocol.cycle, WholeRequest)
        assert not protocol.transport.is_closing()
