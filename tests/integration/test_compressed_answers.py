"""Answers that come compressed, from models and MCP servers: read, and given up where they are
bombs."""

import gzip
import zlib
from collections.abc import Callable

import pytest

from infrastructure.llm.exchange import ReplyLimits
from infrastructure.mcp.faults import BROKEN, TransportFailedError
from tests.integration.raw_servers import (
    LIMIT,
    MIB,
    Server,
    a_model,
    always,
    an_endpoint,
    answer_of,
    chunked,
    failure_of,
    fault_of,
    texts_of,
    whole,
)
from tests.unit.llm.model_requests import a_request, reply_of


def deflated(body: bytes) -> bytes:
    return zlib.compress(body)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", deflated)])
async def test_compressed_answers_are_read(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    header = f"content-encoding: {encoding}"
    events = b"".join(b"data: %d\n\n" % number for number in range(3))
    half = len(pack(events)) // 2
    streamed = chunked(pack(events)[:half], pack(events)[half:], kind="text/event-stream", headers=f"{header}\r\n")
    async with Server(always(whole(pack(b"hello"), header))).open() as server, an_endpoint(server) as endpoint:
        assert [await answer_of(endpoint) for _ in range(2)] == [b"hello"] * 2
        assert server.connections == 1
    async with Server(always(*streamed)).open() as server, an_endpoint(server) as endpoint:
        assert await texts_of(endpoint) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("streams", [True, False])
async def test_compressed_replies_of_models_are_read(streams: bool) -> None:
    stop = b'{"choices":[{"%b":{"content":"hi"},"finish_reason":"stop"}]}'
    packer = zlib.compressobj(wbits=31)
    flush = [
        packer.compress(b"data: " + stop % b"delta" + b"\n\n") + packer.flush(zlib.Z_SYNC_FLUSH),
        packer.compress(b"data: [DONE]\n\n") + packer.flush(),
    ]
    answers = (
        chunked(*flush, kind="text/event-stream", headers="content-encoding: gzip\r\n")
        if streams
        else [whole(gzip.compress(stop % b"message"), "content-encoding: gzip")]
    )
    async with Server(always(*answers)).open() as server, a_model(server) as model:
        for _ in range(2):
            assert (await reply_of(model.stream(a_request("local:x")))).text == "hi"
    assert server.connections == 1


def a_bomb(mebibytes: int, of: bytes = b"\0") -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(of * (MIB // len(of))) for _ in range(mebibytes)), packer.flush()])


@pytest.mark.requirement("B16")
async def test_a_compression_bomb_is_given_up_at_the_limit_of_a_reply() -> None:
    bomb = a_bomb(200)
    assert len(bomb) < 4 * LIMIT
    async with (
        Server(always(*chunked(bomb, headers="content-encoding: gzip\r\n"))).open() as server,
        an_endpoint(server, limit=4 * LIMIT) as endpoint,
    ):
        fault = await fault_of(endpoint)
        assert "more than" in fault.detail
        size = int(fault.detail.split("more than ")[1].split(" ")[0])
        assert 4 * LIMIT < size < 4 * LIMIT + MIB  # one step of decompression over the limit
        await server.left.wait()


@pytest.mark.requirement("B16")
async def test_a_compressed_event_without_end_is_given_up() -> None:
    answers = chunked(a_bomb(200, b"x"), kind="text/event-stream", headers="content-encoding: gzip\r\n")
    async with Server(always(*answers)).open() as server, an_endpoint(server, limit=LIMIT) as endpoint:
        with pytest.raises(TransportFailedError, match="exceeds the limit"):
            await texts_of(endpoint)
        await server.left.wait()


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
async def test_a_compression_bomb_of_a_model_is_given_up(kind: str) -> None:
    answers = chunked(a_bomb(200), kind=kind, headers="content-encoding: gzip\r\n")
    reply_limits = ReplyLimits(max_reply_bytes=LIMIT)
    async with (
        Server(always(*answers)).open() as server,
        a_model(server, reply_limits=reply_limits) as m,
    ):
        error = await failure_of(m)
        assert (error.code, "too large" in error.detail) == ("model_invalid_reply", True)
        await server.left.wait()


async def test_an_answer_that_is_not_what_it_says_it_is_compressed_with_is_broken() -> None:
    async with Server(always(whole(b"plain", "content-encoding: gzip"))).open() as server:
        async with an_endpoint(server) as endpoint:
            assert await fault_of(endpoint) == BROKEN
        async with a_model(server) as model:
            assert (await failure_of(model)).code == "model_unavailable"
