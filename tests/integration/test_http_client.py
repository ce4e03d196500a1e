"""How a connection fails, in httpx's words: refused, too late, broken off, at the start and in the
middle of an answer."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
import pytest

from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressBlockedError, EgressPolicy

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"


@asynccontextmanager
async def serving(answer: bytes | None, *, reset: bool = False) -> AsyncIterator[str]:
    """A server that reads a request, writes `answer` and hangs up, with `reset` not gently; with
    None it says nothing."""
    left: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            return
        writer.write(answer)
        await writer.drain()
        if reset:
            writer.transport.abort()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for writer in left:
            writer.close()


async def failure(
    url: str, *, connect_s: float = 60.0, read_s: float = 60.0, egress: EgressPolicy | None = None
) -> httpx.HTTPError:
    async with HttpClients().create(connect_timeout_s=connect_s, read_timeout_s=read_s, egress=egress) as client:
        with pytest.raises(httpx.HTTPError) as raised:
            await client.get(url)
        return raised.value


@contextmanager
def a_full_backlog() -> Iterator[int]:
    """A port whose connections never come about."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        try:
            yield listener.getsockname()[1]
        finally:
            for client in waiting:
                client.close()


async def test_a_refused_connection_is_no_timeout() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        error = await failure(f"http://127.0.0.1:{nobody.getsockname()[1]}/")
    assert type(error) is httpx.ConnectError


async def test_a_connection_that_does_not_come_about_is_one() -> None:
    with a_full_backlog() as port:
        error = await failure(f"http://127.0.0.1:{port}/", connect_s=0.3)
    assert type(error) is httpx.ConnectTimeout


@pytest.mark.parametrize(
    ("answer", "reset", "error"),
    [
        (b"", False, httpx.RemoteProtocolError),
        (b"SSH-2.0-nothing\r\n\r\n", False, httpx.RemoteProtocolError),
        (HEAD + b"half", False, httpx.ReadError),
        (HEAD + b"half", True, httpx.ReadError),
        (None, False, httpx.ReadTimeout),
    ],
    ids=["hung up", "not http", "cut", "reset", "silent"],
)
async def test_an_answer_that_does_not_come_or_breaks_off_is_named(
    answer: bytes | None, reset: bool, error: type[httpx.HTTPError]
) -> None:
    async with serving(answer, reset=reset) as url:
        assert type(await failure(url, read_s=0.3 if answer is None else 60.0)) is error


async def test_a_connection_that_cannot_be_made_secure_is_one_that_failed() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        error = await failure(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert type(error) is httpx.ConnectError
    assert isinstance(getattr(error.__cause__, "os_error", None), ssl.SSLError)


@pytest.mark.requirement("B16")
async def test_what_the_egress_guard_keeps_in_is_a_connection_that_failed_because_of_it() -> None:
    error = await failure("http://localhost:9/", egress=EgressPolicy())
    assert type(error) is httpx.ConnectError
    cause = error.__cause__
    assert isinstance(getattr(cause, "os_error", None), EgressBlockedError)
