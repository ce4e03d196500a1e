"""POSTs over kept connections, against servers that write whatever HTTP they like."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from pytest_mock import MockerFixture

from infrastructure.http.kept_connection import BrokenError, KeptConnection, Origin
from infrastructure.http.kept_http import KeptConnections, NotConnectedError, head_of
from tests.integration.mcp.parts import free_port

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PATIENCE_S = 10.0
SOON_S = 0.02


async def literal(host: str, port: int) -> list[str]:
    return [host]


def never() -> ssl.SSLContext:
    raise AssertionError("nothing here is https")


@asynccontextmanager
async def pool_and_origin(
    handle: Handler, *, kept_for_s: float = 60.0
) -> AsyncIterator[tuple[KeptConnections, Origin]]:
    handling: set[asyncio.Task[None]] = set()

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handling.add(task)
        try:
            await handle(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(handled, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pool = KeptConnections(resolve=literal, context=never, connect_timeout_s=PATIENCE_S, kept_for_s=kept_for_s)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield pool, Origin("127.0.0.1", port, False, f"127.0.0.1:{port}")
    finally:
        await pool.close()
        server.close()
        await server.wait_closed()
        await asyncio.gather(*handling)


async def request_in(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


def always(answer: bytes, *, then_close: bool = False) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await request_in(reader)
                writer.write(answer)
                await writer.drain()
                if then_close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    return handle


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
    ids=["length", "chunks", "after an interim answer"],
)
async def test_a_body_is_whole_however_it_is_framed_and_the_connection_is_used_again(answer: bytes) -> None:
    connections = 0
    respond = always(answer)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await respond(reader, writer)

    async with pool_and_origin(handle) as (pool, origin):
        for _ in range(3):
            got = await pool.post(origin, head_of(origin, "/", {}), b"{}", limit=100)
            assert (got.status, got.body) == (200, b"hello")
        assert connections == 1


PLAIN = b"HTTP/1.1 200 OK\r\nX-Kind: plain\r\nContent-Length: %d\r\nX-Last: yes\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN % 5 + b"hello",
        PLAIN % 3 + b"bye",
        PLAIN % 0,
        PLAIN % 12 + b"twelve bytes",
        PLAIN.replace(b"%d", b"005") + b"hello",
        PLAIN.replace(b"%d", b"5 ") + b"hello",
        PLAIN.replace(b"%d", b"5" * 5_000) + b"hello",
        PLAIN.replace(b"%d", b"-1") + b"hello",
        PLAIN.replace(b"%d\r\n", b""),
        PLAIN % 150 + b"x" * 150,
        PLAIN.replace(b"yes", b"no") % 5 + b"hello",
        PLAIN.replace(b"plain", b"other") % 5 + b"hello",
        PLAIN.replace(b"200 OK", b"404 Not Found") % 5 + b"hello",
        PLAIN.replace(b"200 OK", b"204 No Content") % 0,
        PLAIN.replace(b"X-Last: yes", b"Connection: close") % 5 + b"hello",
        PLAIN.replace(b"X-Last: yes", b"Content-Length: 5") % 5 + b"hello",
        PLAIN % 5 + b"hello" + PLAIN % 3 + b"bye",
        PLAIN % 5 + b"hello, and more",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + PLAIN % 5 + b"hello",
        b"HTTP/1.1 200 OK\r\nX-Kind: plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"this is not HTTP\r\n\r\n",
    ],
)
async def test_an_answer_is_the_same_after_another_as_on_a_new_connection(answer: bytes) -> None:
    async def after(*earlier: bytes) -> tuple[object, ...]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                for written in (*earlier, answer):
                    await request_in(reader)
                    writer.write(written)

        async with pool_and_origin(handle) as (pool, origin):
            head = head_of(origin, "/", {})
            for written in earlier:
                got = await pool.post(origin, head, b"{}", limit=100)
                assert got.body == written.partition(b"\r\n\r\n")[2]
            try:
                got = await pool.post(origin, head, b"{}", limit=100)
            except BrokenError:
                return ()
            return got.status, got.headers, got.body, got.size, got.content_length

    alone = await after()
    assert await after(PLAIN % 5 + b"first") == alone
    assert await after(PLAIN % 5 + b"first", PLAIN % 6 + b"second") == alone
    assert await after(PLAIN.replace(b"200 OK", b"204 No Content") % 0) == alone


async def test_what_an_answer_says_twice_over_is_parsed_once(mocker: MockerFixture) -> None:
    parsed = mocker.spy(KeptConnection, "on_headers_complete")
    async with pool_and_origin(always(PLAIN % 5 + b"hello")) as (pool, origin):
        for _ in range(3):
            got = await pool.post(origin, head_of(origin, "/", {}), b"{}", limit=100)
            assert (got.status, got.headers["x-kind"], got.body) == (200, "plain", b"hello")
    assert parsed.call_count == 1


async def test_an_answer_in_parts_is_whole_also_after_one_like_it() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await request_in(reader)
                writer.write(PLAIN % 5 + b"whole")
                await request_in(reader)
                for part in (PLAIN[:20], (PLAIN % 5)[20:] + b"in", b" parts"[:1], b"pt"):
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)

    async with pool_and_origin(handle) as (pool, origin):
        bodies = [(await pool.post(origin, head_of(origin, "/", {}), b"", limit=100)).body for _ in range(6)]
    assert bodies == [b"whole", b"in pt"] * 3


async def test_a_connection_that_its_server_may_be_about_to_end_is_not_used_again() -> None:
    connections = 0

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await always(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(reader, writer)

    async with pool_and_origin(counted, kept_for_s=0.0) as (pool, origin):
        for _ in range(3):
            await pool.post(origin, head_of(origin, "/", {}), b"", limit=10)
        assert connections == 3


async def test_a_body_that_only_the_end_of_the_connection_ends_is_whole() -> None:
    async with pool_and_origin(always(b"HTTP/1.1 200 OK\r\n\r\nhello", then_close=True)) as (pool, origin):
        for _ in range(2):
            assert (await pool.post(origin, head_of(origin, "/", {}), b"", limit=100)).body == b"hello"


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", b"this is not HTTP\r\n\r\n", b""]
)
async def test_an_answer_that_breaks_off_or_is_no_http_is_broken(answer: bytes) -> None:
    async with pool_and_origin(always(answer, then_close=True)) as (pool, origin):
        with pytest.raises(BrokenError):
            await pool.post(origin, head_of(origin, "/", {}), b"", limit=100)


async def test_of_a_body_over_the_limit_only_the_size_is_kept() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (500, b"x" * 500)
    async with pool_and_origin(always(chunked)) as (pool, origin):
        got = await pool.post(origin, head_of(origin, "/", {}), b"", limit=100)
        assert (got.size, got.body) == (500, b"")


async def test_a_second_answer_to_one_request_is_nobodys() -> None:
    twice = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb"
    async with pool_and_origin(always(twice)) as (pool, origin):
        for _ in range(3):
            assert (await pool.post(origin, head_of(origin, "/", {}), b"", limit=100)).body == b"a"


async def test_cancelling_the_wait_ends_the_connection() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_in(reader)
        asked.set()
        with suppress(ConnectionError):
            await reader.read()
        ended.set()

    async with pool_and_origin(handle) as (pool, origin):
        waiting = asyncio.create_task(pool.post(origin, head_of(origin, "/", {}), b"", limit=100))
        await asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await ended.wait()


async def test_a_stream_comes_as_it_is_written_and_gives_its_connection_back_at_its_end() -> None:
    more = asyncio.Event()
    connections = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while True:
                await request_in(reader)
                start = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                writer.write(start + b"3\r\none\r\n")
                await more.wait()
                more.clear()
                writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    async with pool_and_origin(handle) as (pool, origin):
        for _ in range(2):
            got = await pool.post(origin, head_of(origin, "/", {}), b"", limit=100)
            assert got.body is None
            chunks = got.chunks()
            assert await anext(chunks) == b"one"
            more.set()
            assert b"".join([chunk async for chunk in chunks]) == b"two"
        assert connections == 1


@pytest.mark.parametrize("begins", [False, True], ids=["before an answer", "in the middle of one"])
async def test_silence_longer_than_the_time_given_ends_the_connection(begins: bool) -> None:
    ended = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_in(reader)
        if begins:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            await reader.read()
        ended.set()

    async def read(pool: KeptConnections, origin: Origin) -> None:
        got = await pool.post(origin, head_of(origin, "/", {}), b"", limit=100, wait_s=PATIENCE_S if begins else SOON_S)
        try:
            await got.more(SOON_S)
        finally:
            got.close()

    async with pool_and_origin(handle) as (pool, origin):
        with pytest.raises(TimeoutError):
            await read(pool, origin)
        await ended.wait()


async def test_a_stream_that_begins_just_as_nobody_waits_for_it_any_more_ends_with_its_connection(
    mocker: MockerFixture,
) -> None:
    pool = KeptConnections(resolve=literal, context=never, connect_timeout_s=PATIENCE_S)
    connection = KeptConnection(pool, Origin("h", 80, False, "h"))
    asked, transport = asyncio.Event(), mocker.create_autospec(asyncio.Transport, instance=True)
    transport.write.side_effect = lambda _: asked.set()
    connection.connection_made(transport)
    waiting = asyncio.create_task(connection.ask(b"POST / HTTP/1.1\r\nContent-Length: ", b"", 100))
    await asked.wait()
    waiting.cancel()
    connection.data_received(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with pytest.raises(asyncio.CancelledError):
        await waiting
    transport.abort.assert_called()


async def test_an_address_where_nobody_listens_is_not_connected() -> None:
    pool = KeptConnections(resolve=literal, context=never, connect_timeout_s=PATIENCE_S)
    port = free_port()
    origin = Origin("127.0.0.1", port, False, f"127.0.0.1:{port}")
    with pytest.raises(NotConnectedError):
        await pool.post(origin, head_of(origin, "/", {}), b"", limit=100)


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\ny", "a\0"])
def test_a_header_cannot_become_two(value: str) -> None:
    with pytest.raises(ValueError, match="line ends"):
        head_of(Origin("h", 80, False, "h"), "/", {"authorization": value})
