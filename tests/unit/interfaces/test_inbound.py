"""Requests are answered as HTTP/1.1 has it; those without end, and connections without number, are
not."""

import json
from typing import cast

import pytest
from litestar.types import ASGIApp

from interfaces.inbound import Inbound, InboundLimits
from tests.unit.interfaces.served_requests import App, posted, served


async def test_requests_of_one_connection_are_answered_each() -> None:
    async with served(App()) as connected:
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


async def test_each_answer_has_its_own_head() -> None:
    heads = []
    async with served(App(), server_header=False, date_header=False) as connected:
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


async def test_requests_sent_one_behind_the_other_are_answered_in_order() -> None:
    async with served(App()) as connected:
        client = await connected()

        answers = await client.ask(posted(b"a"), posted(b"bb"), posted(b"ccc", path=b"/other"), posted(b"dddd"))

    assert [answer.rpartition(b" ")[2] for answer in answers] == [b"1", b"2", b"3", b"4"]


async def test_a_body_that_comes_in_parts_is_taken_whole() -> None:
    request = posted(b"x" * 1_000)
    async with served(App()) as connected:
        client = await connected()
        for part in (request[:10], request[10:100], request[100:]):
            client.writer.write(part)
            await client.writer.drain()

        assert await client.answer() == b"HTTP/1.1 200 OK POST /mcp 1000"


async def test_a_large_body_is_read_as_it_comes() -> None:
    async with served(App()) as connected:
        client = await connected()

        assert await client.ask(posted(b"x" * 3_000_000), posted(b"y")) == [
            b"HTTP/1.1 200 OK POST /mcp 3000000",
            b"HTTP/1.1 200 OK POST /mcp 1",
        ]


async def test_a_chunked_body_is_taken_too() -> None:
    request = b"POST /mcp HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    async with served(App()) as connected:
        assert await (await connected()).ask(request) == [b"HTTP/1.1 200 OK POST /mcp 5"]


async def test_an_answer_may_be_a_stream() -> None:
    async with served(App()) as connected:
        client = await connected()

        answers = await client.ask(posted(b"stream"), posted(b"parts"), posted(b"x"))

    assert answers == [
        b"HTTP/1.1 200 OK 3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK onetwo",
        b"HTTP/1.1 200 OK POST /mcp 1",
    ]


async def test_a_fault_of_the_application_is_an_answer() -> None:
    async with served(App()) as connected:
        assert await (await connected()).ask(posted(b"crash")) == [
            b"HTTP/1.1 500 Internal Server Error Internal Server Error"
        ]


async def test_what_is_not_http_is_refused() -> None:
    async with served(App()) as connected:
        client = await connected()

        await client.ask(posted(b"abc"))
        (answer,) = await client.ask(b"nonsense\r\n\r\n")

        assert answer.startswith(b"HTTP/1.1 400 ")
        assert await client.reader.read() == b""


@pytest.mark.parametrize(
    "request_", [posted(b"abc", extra=b"Connection: close\r\n"), posted(b"close"), posted(b"abc", version=b"1.0")]
)
async def test_a_connection_ends_when_either_side_wants_that(request_: bytes) -> None:
    async with served(App()) as connected:
        client = await connected()
        (answer,) = await client.ask(request_)

        assert answer.startswith(b"HTTP/1.1 200 OK ")
        assert await client.reader.read() == b""


async def test_whoever_waits_for_leave_to_send_a_body_gets_it() -> None:
    head, _, body = posted(b"abc", extra=b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    async with served(App()) as connected:
        client = await connected()
        client.writer.write(head + b"\r\n\r\n")
        leave = await client.reader.readuntil(b"\r\n\r\n")
        client.writer.write(body)

        assert leave == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert await client.answer() == b"HTTP/1.1 200 OK POST /mcp 3"


async def test_the_application_is_told_that_its_client_has_left() -> None:
    app = App()
    async with served(app) as connected:
        client = await connected()
        client.writer.write(posted(b"leave"))
        await app.is_waiting.wait()
        client.writer.close()

        await app.left.wait()


async def test_a_connection_that_nobody_uses_is_closed() -> None:
    async with served(App(), timeout_keep_alive=0) as connected:
        client = await connected()
        await client.ask(posted(b"abc"))

        assert await client.reader.read() == b""


ONE = posted(b"abc")
OK = b"HTTP/1.1 200 OK POST /mcp 3"


@pytest.mark.parametrize(
    "parts",
    [
        [ONE[:20], ONE[20:], ONE],
        [ONE + ONE[:30], ONE[30:] + ONE[:30], ONE[30:]],
        [ONE + b"\r\n", b"\r\n", ONE],
        [bytes([byte]) for byte in ONE],
        [posted(ONE), ONE],
    ],
    ids=["in two parts", "halves", "line ends between", "byte by byte", "a body like a head"],
)
async def test_where_the_bytes_are_cut_changes_nothing(parts: list[bytes]) -> None:
    async with served(App()) as connected:
        client = await connected()
        for part in parts:
            client.writer.write(part)
            await client.writer.drain()
        client.writer.write(posted(b"end", path=b"/end"))
        answers: list[bytes] = []
        while not answers or not answers[-1].endswith(b"/end 3"):
            answers.append(await client.answer())
    assert {answer.rpartition(b" ")[0] for answer in answers[:-1]} == {b"HTTP/1.1 200 OK POST /mcp"}


@pytest.mark.parametrize(
    "request_",
    [
        posted(b"abc", extra=b"Content-Length: 3\r\n"),
        posted(b"abc", extra=b"Content-Length: 4\r\n"),
        posted(b"abc", extra=b"Transfer-Encoding: chunked\r\n"),
        posted(b"abc", extra=b"X-A : b\r\n"),
        posted(b"abc", extra=b"X-A: b\0\r\n"),
    ],
    ids=["a length twice", "two lengths", "a length and chunks", "a space before the colon", "a zero byte"],
)
async def test_a_request_that_could_be_read_in_two_ways_reaches_no_application(request_: bytes) -> None:
    app = App()
    async with served(app) as connected:
        client = await connected()
        (answer,) = await client.ask(request_)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert await client.reader.read() == b""
    assert app.requests == 0


async def test_a_client_that_asks_for_another_protocol_is_answered_in_this_one() -> None:
    request = posted(b"", extra=b"Connection: Upgrade\r\nUpgrade: h2c\r\n")
    async with served(App()) as connected:
        assert await (await connected()).ask(request) == [b"HTTP/1.1 200 OK POST /mcp 0"]


HEAD = b"POST /mcp HTTP/1.1\r\nHost: here\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /" + b"a" * 40_000,
        HEAD + b"X-A: " + b"a" * 40_000,
        HEAD + b"a" * 40_000,
        HEAD + b"A: b\r\n" * 101,
        HEAD + (b"X-A: " + b"a" * 4_000 + b"\r\n") * 10,
        HEAD + (b"X-A: " + b"a" * 4_000 + b"\r\n") * 10 + b"\r\n",
    ],
    ids=["url", "value", "name", "lines", "bytes", "complete"],
)
@pytest.mark.parametrize("earlier", [0, 1])
async def test_a_head_that_is_too_large_is_answered_431_and_the_connection_closed(endless: bytes, earlier: int) -> None:
    app = App()
    async with served(app) as connected:
        client = await connected()
        for _ in range(earlier):
            await client.ask(ONE)
        client.writer.write(endless)
        answer = await client.answer()
        rest = await client.reader.read()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert json.loads(answer.partition(b"Large ")[2])["code"] == "head_too_large"
    assert (rest, app.requests) == (b"", earlier)


@pytest.mark.parametrize(
    "endless",
    [b"5;" + b"a" * 400_000, b"0\r\n" + b"X-A: b\r\n" * 102, b"0\r\nX-A: " + b"a" * 400_000],
    ids=["extension", "trailers", "trailer"],
)
async def test_what_stands_around_the_parts_of_a_body_is_bounded_like_a_head(endless: bytes) -> None:
    async with served(App()) as connected:
        client = await connected()
        client.writer.write(CHUNKED)
        client.writer.write(endless)
        assert b" 200 " not in await client.reader.read()


async def test_a_second_head_that_is_too_large_takes_no_answer_from_the_first_request() -> None:
    app = App()
    async with served(app) as connected:
        client = await connected()
        client.writer.write(posted(b"leave"))
        await app.is_waiting.wait()
        client.writer.write(HEAD + b"X-A: " + b"a" * 40_000)
        assert await client.reader.read() == b""
        await app.left.wait()


async def test_a_body_in_very_small_parts_is_no_head() -> None:
    parts = b"1\r\nx\r\n" * 20_000
    request = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
    async with served(App()) as connected:
        assert await (await connected()).ask(request) == [b"HTTP/1.1 200 OK POST /mcp 20000"]


async def test_an_answer_before_a_large_body_ends_the_connection_and_is_not_lost() -> None:
    async with served(App()) as connected:
        client = await connected()
        client.writer.write(posted(b"x" * 3_000_000, path=b"/refused"))
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close\r\n" in head
        assert await client.reader.read() == b"no"


@pytest.mark.parametrize("extra", [b"Expect: 100-continue\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_an_answer_before_a_body_that_may_never_come_ends_the_connection(extra: bytes) -> None:
    async with served(App()) as connected:
        client = await connected()
        length = b"" if b"chunked" in extra else b"Content-Length: 3\r\n"
        client.writer.write(b"POST /refused HTTP/1.1\r\nHost: here\r\n" + length + extra + b"\r\n")
        assert (await client.reader.read()).endswith(b"\r\n\r\nno")


async def test_an_answer_before_a_small_body_keeps_the_connection() -> None:
    request = posted(b"abc", path=b"/refused")
    async with served(App()) as connected:
        client = await connected()
        client.writer.write(request[:-3])
        assert await client.answer() == b"HTTP/1.1 401 Unauthorized no"
        client.writer.write(request[-3:])
        assert await client.ask(ONE) == [OK]


async def test_connections_past_the_limit_are_answered_503_and_a_place_is_free_again() -> None:
    async with served(App(), InboundLimits(connections=2)) as connected:
        first, second = await connected(), await connected()
        assert await first.ask(ONE) == await second.ask(ONE) == [OK]
        answer = await (await connected()).answer()
        assert json.loads(answer.partition(b"Unavailable ")[2])["code"] == "too_many_connections"
        first.writer.write(posted(b"abc", extra=b"Connection: close\r\n"))
        await first.reader.read()
        assert await (await connected()).ask(ONE) == [OK]


async def test_an_address_has_so_many_connections_unless_many_clients_share_it() -> None:
    async with served(App(), InboundLimits(per_address=1, shared=())) as connected:
        client = await connected()
        assert await client.ask(ONE) == [OK]
        assert (await (await connected()).answer()).startswith(b"HTTP/1.1 503 ")
    async with served(App(), InboundLimits(per_address=1)) as connected:
        for client in [await connected() for _ in range(3)]:
            assert await client.ask(ONE) == [OK]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("203.0.113.7", "::ffff:203.0.113.7", True),
        ("203.0.113.7", "203.0.113.8", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_an_ipv6_network_of_one_client_is_one_address(one: str, other: str, is_same: bool) -> None:
    inbound = Inbound(cast(ASGIApp, App()), InboundLimits())
    assert (inbound.counted(one) == inbound.counted(other)) is is_same
