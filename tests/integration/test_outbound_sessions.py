"""What connections do, seen from servers that write whatever HTTP they like: pooled, closed,
silent, unfinished."""

import asyncio
import ssl

import aiohttp
import pytest

from infrastructure.http.sessions import OutboundSessions
from infrastructure.llm.exchange import ReplyLimits
from infrastructure.mcp.faults import BROKEN, not_reached
from tests.integration.mcp.parts import free_port
from tests.integration.raw_servers import (
    Server,
    a_model,
    always,
    an_endpoint,
    answer_of,
    chunked,
    failure_of,
    fault_of,
    request_in,
    silent,
    whole,
)

# --- pooled connections ---


@pytest.mark.parametrize(
    "answers",
    [
        [whole(b"hello")],
        chunked(b"he", b"llo"),
        [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", whole(b"hello")],
        [whole(b"hello")[:20], whole(b"hello")[20:-3], b"llo"],
    ],
    ids=["length", "chunks", "after an interim answer", "in parts"],
)
async def test_a_body_is_whole_however_it_is_framed_and_the_connection_serves_again(answers: list[bytes]) -> None:
    async with Server(always(*answers)).open() as server, an_endpoint(server) as endpoint:
        assert [await answer_of(endpoint) for _ in range(3)] == [b"hello"] * 3
    assert server.connections == 1


async def test_a_connection_that_its_server_closed_between_calls_is_replaced() -> None:
    async with Server(always(whole(b"hello"), then_close=True)).open() as server, an_endpoint(server) as endpoint:
        for _ in range(3):
            server.left.clear()
            assert await answer_of(endpoint) == b"hello"
            await server.left.wait()
            await asyncio.sleep(0.01)  # until the end of the connection has come
    assert server.connections == 3


async def test_a_request_on_a_pooled_connection_that_ends_before_an_answer_is_of_unknown_outcome_and_not_repeated() -> (
    None
):
    requests = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await request_in(reader)
        requests += 1
        writer.write(whole(b"hello"))
        await request_in(reader)
        requests += 1

    async with Server(handle).open() as server, an_endpoint(server) as endpoint:
        assert await answer_of(endpoint) == b"hello"
        fault = await fault_of(endpoint)
    assert (fault, fault.not_executed) == (BROKEN, False)
    assert (server.connections, requests) == (1, 2)


async def test_where_nothing_listens_nothing_was_executed() -> None:
    server = Server(silent)
    server.port = free_port()
    async with an_endpoint(server) as endpoint:
        fault = await fault_of(endpoint)
    assert (fault, fault.not_executed) == (not_reached("nothing accepts connections at this port"), True)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", b"this is not HTTP\r\n\r\n", b""]
)
async def test_an_answer_that_breaks_off_or_is_no_http_is_broken(answer: bytes) -> None:
    async with Server(always(answer, then_close=True)).open() as server, an_endpoint(server) as endpoint:
        assert await fault_of(endpoint) == BROKEN


async def test_a_body_that_only_the_end_of_the_connection_ends_is_whole() -> None:
    handler = always(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\nhello", then_close=True)
    async with Server(handler).open() as server, an_endpoint(server) as endpoint:
        assert [await answer_of(endpoint) for _ in range(2)] == [b"hello"] * 2


async def test_an_error_status_keeps_its_body_and_the_connection() -> None:
    refusal = whole(b'{"error": "no"}').replace(b"200 OK", b"422 Unprocessable Content")
    async with Server(always(refusal)).open() as server, an_endpoint(server) as endpoint:
        for _ in range(2):
            async with endpoint.request("POST", {}, b"{}") as response:
                assert response.status == 422
                assert await endpoint.read_body(response) == b'{"error": "no"}'
    assert server.connections == 1


async def test_a_second_answer_to_one_request_is_not_the_answer_to_the_next() -> None:
    async with Server(always(whole(b"a") + whole(b"b"))).open() as server, an_endpoint(server) as endpoint:
        assert [await answer_of(endpoint) for _ in range(3)] == [b"a"] * 3


# --- time ---


async def test_cancelling_a_request_closes_its_connection() -> None:
    async with Server(silent).open() as server, an_endpoint(server) as endpoint:
        waiting = asyncio.create_task(answer_of(endpoint))
        await server.came.wait()
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await server.left.wait()


async def test_requests_in_flight_can_be_broken_off() -> None:
    async with Server(silent).open() as server, an_endpoint(server) as endpoint:
        waiting = asyncio.create_task(fault_of(endpoint.at("/other")))
        await server.came.wait()
        endpoint.abort_requests()
        assert await waiting == BROKEN
        await server.left.wait()


@pytest.mark.parametrize(
    ("begins", "code"),
    [(False, "model_timeout"), (True, "model_stalled")],
)
async def test_a_model_that_goes_silent_loses_its_connection(begins: bool, code: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_in(reader)
        if begins:
            writer.write(b"".join(chunked(kind="text/event-stream")[:1]))
        await reader.read()

    # The same time bounds the wait for the head, which is to come before it is over.
    reply_limits = ReplyLimits(stall_s=2.0 if begins else 0.05)
    async with (
        Server(handle).open() as server,
        a_model(server, reply_limits=reply_limits) as model,
    ):
        assert (await failure_of(model)).code == code
        await server.left.wait()


async def test_a_whole_reply_has_one_deadline_however_it_drips() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_in(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with (
        Server(handle).open() as server,
        a_model(server, reply_limits=ReplyLimits(reply_s=0.2)) as m,
    ):
        assert (await failure_of(m)).code in {"model_timeout", "model_stalled"}


# --- what a session never does ---


async def test_a_session_keeps_no_cookie_and_follows_no_redirect_by_itself() -> None:
    seen: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 302 Found\r\nlocation: /other\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n")

    sessions = OutboundSessions(ssl_context=ssl.create_default_context, keepalive_s=5.0)
    async with Server(handle).open() as server:
        for _ in range(2):
            session = await sessions.to("http", "127.0.0.1", server.port)
            async with session.get(server.url, allow_redirects=False) as response:
                assert response.status == 302
        await sessions.close()
    assert len(seen) == 2
    assert not [head for head in seen if b"cookie" in head.lower()]


async def test_a_header_cannot_become_two() -> None:
    async with Server(always(whole(b"hello"))).open() as server, an_endpoint(server) as endpoint:
        with pytest.raises((ValueError, aiohttp.ClientError)):
            async with endpoint.request("POST", {"mcp-name": "a\r\nx-other: 1"}, b"{}"):
                pass
