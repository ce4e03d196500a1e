"""What happens to connections, seen from a server of our own: kept where a reply was read to its
end, else given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from application.models.ports import ModelError
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.providers import ProviderConfig
from tests.unit.llm.model_requests import a_request, reply_of

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: session=theirs\r\ntransfer-encoding: chunked\r\n\r\n"
STOP = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
REPLY = b"%x\r\n%b\r\n" % (len(STOP), STOP)
END = b"0\r\n\r\n"


class CountingServer:
    """Answers every request with a reply; `ends` says whether the body ends with it."""

    def __init__(self, *, ends: bool, head: bytes = HEAD) -> None:
        self._ends = ends
        self._head = head
        self.connections = 0
        self.requests: list[bytes] = []
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await reader.readexactly(length)
                self.requests.append(head)
                writer.write(self._head + REPLY + (END if self._ends else b""))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()


@asynccontextmanager
async def serving(server: CountingServer, http: AiohttpProviders) -> AsyncIterator[OpenAICompatibleModels]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        provider = ProviderConfig(name="local", kind=ProviderKind.OPENAI, base_url=f"http://127.0.0.1:{port}/v1")
        yield OpenAICompatibleModels(provider=provider, http=http)
        await http.aclose()
        await server.left.wait()


async def test_one_connection_serves_turn_after_turn_and_carries_no_cookie_along(
    http: AiohttpProviders,
) -> None:
    server = CountingServer(ends=True)
    async with serving(server, http) as model:
        for _ in range(5):
            assert (await reply_of(model.stream(a_request("local:x")))).text == "hi"
    assert len(server.requests) == 5
    assert server.connections == 1
    assert not [head for head in server.requests if b"cookie" in head.lower()]
    assert not [head for head in server.requests if b"authorization" in head.lower()]
    assert all(head.lower().count(b"accept-encoding: gzip, deflate\r\n") == 1 for head in server.requests)


async def test_headers_beyond_ascii_do_no_harm(http: AiohttpProviders) -> None:
    server = CountingServer(ends=True, head=HEAD.replace(b"theirs", "Zürich".encode() + b"\xfc"))
    async with serving(server, http) as model:
        for _ in range(2):
            assert (await reply_of(model.stream(a_request("local:x")))).text == "hi"
    assert server.connections == 1


async def test_a_name_that_cannot_be_decoded_is_one_that_leads_nowhere(http: AiohttpProviders) -> None:
    with pytest.raises(aiohttp.ClientConnectorError):
        await http.to("http://xn--a:9/", {}).send(b"{}", silence_s=60.0)


async def test_a_server_that_holds_the_stream_open_after_its_end_loses_the_connection(
    http: AiohttpProviders,
) -> None:
    server = CountingServer(ends=False)
    async with serving(server, http) as model:
        assert (await reply_of(model.stream(a_request("local:x")))).text == "hi"
        await server.left.wait()


async def test_a_port_without_server_is_a_provider_that_cannot_be_reached(http: AiohttpProviders) -> None:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    await expect_unavailable(http, port)


async def test_a_server_that_does_not_speak_http_is_a_provider_that_cannot_be_reached(
    http: AiohttpProviders,
) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        writer.close()

    listener = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with listener:
        await expect_unavailable(http, listener.sockets[0].getsockname()[1])


async def test_a_server_that_hangs_up_is_a_provider_that_cannot_be_reached(http: AiohttpProviders) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    listener = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with listener:
        await expect_unavailable(http, listener.sockets[0].getsockname()[1])


async def expect_unavailable(http: AiohttpProviders, port: int) -> None:
    provider = ProviderConfig(name="local", kind=ProviderKind.OPENAI, base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(ModelError) as raised:
        await reply_of(OpenAICompatibleModels(provider=provider, http=http).stream(a_request("local:x")))
    assert (raised.value.code, raised.value.retryable) == ("model_unavailable", True)
    assert str(port) not in raised.value.detail
