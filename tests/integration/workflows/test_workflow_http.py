"""Requests of workflows over real sockets: guarded, bounded, redirects left alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from application.workflows.http_request import HttpCall, HttpCallFailed
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.workflow_requests import MAX_BYTES, GuardedHttpCaller

OPEN = EgressPolicy(allow=["127.0.0.0/8"])


def call(url: str, *, timeout_s: float = 60.0, query: tuple[tuple[str, str], ...] = ()) -> HttpCall:
    return HttpCall(method="GET", url=url, headers=(("X-Mine", "1"),), query=query, body=None, timeout_s=timeout_s)


@asynccontextmanager
async def serving(answer: bytes | None) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers each request so, or never; what it was asked."""
    asked: list[bytes] = []
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        if answer is None:
            await over.wait()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        over.set()
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def calling(egress: EgressPolicy = OPEN) -> AsyncIterator[GuardedHttpCaller]:
    caller = GuardedHttpCaller(egress=egress, user_agent="dragoman/test")
    try:
        yield caller
    finally:
        await caller.close()


def answer(head: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (head, len(body), body)


async def test_an_answer_is_given_with_its_kind_and_text() -> None:
    sent = answer(b"200 OK\r\nContent-Type: Text/Plain; charset=latin-1", "grün".encode("latin-1"))
    async with serving(sent) as (url, asked), calling() as caller:
        got = await caller.send(call(f"{url}/x?a=1", query=(("b", "ä&"),)))
    assert (got.status, got.media_type, got.text) == (200, "text/plain", "grün")
    assert asked[0].startswith(b"GET /x?a=1&b=%C3%A4%26 HTTP/1.1")
    assert b"x-mine: 1" in asked[0].lower()


async def test_a_charset_that_nobody_knows_is_read_as_utf_8() -> None:
    async with (
        serving(answer(b"200 OK\r\nContent-Type: text/plain; charset=klingon", "ü".encode())) as (url, _),
        calling() as caller,
    ):
        assert (await caller.send(call(url))).text == "ü"


async def test_a_redirect_is_not_followed() -> None:
    async with serving(answer(b"302 Found\r\nLocation: http://127.0.0.1:1/", b"")) as (url, asked), calling() as caller:
        assert (await caller.send(call(url))).status == 302
    assert len(asked) == 1


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "[::1]"])
async def test_a_private_address_is_not_asked(host: str) -> None:
    async with serving(answer(b"200 OK", b"")) as (url, asked), calling(EgressPolicy()) as caller:
        with pytest.raises(HttpCallFailed) as failed:
            await caller.send(call(f"http://{host}:{url.rpartition(':')[2]}/"))
    assert (failed.value.code, failed.value.retryable) == ("http_blocked", False)
    assert asked == []


async def test_an_answer_without_end_is_cut_off() -> None:
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    async with serving(head + b"x" * (MAX_BYTES + 1)) as (url, _), calling() as caller:
        with pytest.raises(HttpCallFailed) as failed:
            await caller.send(call(url))
    assert failed.value.code == "http_answer_too_large"


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with serving(None) as (url, _), calling() as caller:
        with pytest.raises(HttpCallFailed) as failed:
            await caller.send(call(url, timeout_s=0.2))
    assert (failed.value.code, failed.value.retryable) == ("http_timeout", True)


@pytest.mark.parametrize("url", ["http://", "ftp://a.example/", "nonsense", "http://127.0.0.1:99999/"])
async def test_what_is_no_address_is_told(url: str) -> None:
    async with calling() as caller:
        with pytest.raises(HttpCallFailed) as failed:
            await caller.send(call(url))
    assert failed.value.retryable is False


async def test_a_server_that_is_not_there_may_be_there_later() -> None:
    async with serving(answer(b"200 OK", b"")) as (url, _):
        pass
    async with calling() as caller:
        with pytest.raises(HttpCallFailed) as failed:
            await caller.send(call(url))
    assert (failed.value.code, failed.value.retryable) == ("http_failed", True)
