"""Bodies of models that come byte by byte and never end."""

import asyncio

import pytest

from infrastructure.llm.exchange import ReplyLimits
from tests.integration.raw_servers import Handler, Server, a_model, failure_of, request_in

SHORT = ReplyLimits(reply_s=0.3, error_s=0.3)


def trickling(head: bytes) -> Handler:
    """A head, then a byte now and then, until the client leaves."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_in(reader)
        writer.write(head + b"Connection: close\r\n\r\n")
        left = asyncio.create_task(reader.read())
        while not left.done():
            writer.write(b" ")
            await writer.drain()
            await asyncio.wait([left], timeout=0.02)

    return answer


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(("status", "code"), [(b"500 No", "model_unavailable"), (b"400 No", "model_rejected")])
async def test_the_body_of_an_error_is_read_for_a_bounded_time(status: bytes, code: str) -> None:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\n"
    async with Server(trickling(head)).open() as server, a_model(server, reply_limits=SHORT) as model:
        assert (await failure_of(model)).code == code
        await server.left.wait()


@pytest.mark.requirement("A11")
async def test_a_whole_reply_is_read_for_a_bounded_time() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    async with (
        Server(trickling(head)).open() as server,
        a_model(server, reply_limits=SHORT) as model,
    ):
        assert (await failure_of(model)).code in {"model_stalled", "model_timeout"}
        await server.left.wait()
