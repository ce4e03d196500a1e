"""Servers that write whatever HTTP they like, and clients of models and MCP servers that ask
them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from application.models.ports import ModelError
from application.system.event_stream import StreamEvent
from domain.model_providers.provider import ProviderKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.sessions import OutboundSessions
from infrastructure.llm.exchange import ReplyLimits
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.providers import ProviderConfig
from infrastructure.mcp.faults import TransportFailedError, TransportFault
from infrastructure.mcp.pace import Pace
from infrastructure.mcp.transports.remote import Endpoint, RemoteClient
from tests.unit.llm.model_requests import a_request, all_events

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PATIENCE_S = 60.0
LIMIT = 100_000
MIB = 1024 * 1024


class Server:
    """Counts connections, and when their clients leave."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self.connections = 0
        self.came, self.left = asyncio.Event(), asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Server"]:
        tasks: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            self.connections += 1
            self.came.set()
            try:
                with suppress(asyncio.IncompleteReadError, ConnectionError):
                    await self._handle(reader, writer)
            finally:
                writer.close()
                self.left.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            async with asyncio.timeout(PATIENCE_S):
                yield self
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def request_in(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    await reader.readexactly(length)


def always(*answers: bytes, then_close: bool = False) -> Handler:
    """Answers every request so, an answer in as many writes as are given."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_in(reader)
            for answer in answers:
                writer.write(answer)
                await writer.drain()
                await asyncio.sleep(0)
            if then_close:
                return

    return handle


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes a request and says nothing until the client leaves."""
    await request_in(reader)
    await reader.read()


def whole(body: bytes, *headers: str, kind: str = "application/json") -> bytes:
    lines = ("HTTP/1.1 200 OK", f"content-type: {kind}", f"content-length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def chunked(*pieces: bytes, kind: str = "application/json", headers: str = "") -> list[bytes]:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n{headers}\r\n".encode()
    return [head, *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]


@asynccontextmanager
async def an_endpoint(server: Server, *, limit: int = LIMIT) -> AsyncIterator[Endpoint]:
    client = RemoteClient(egress=EgressPolicy(["127.0.0.0/8"]))
    try:
        yield Endpoint(client, f"{server.url}/mcp", {}, limit)
    finally:
        await client.close()


async def answer_of(endpoint: Endpoint) -> bytes:
    async with endpoint.request("POST", {}, b"{}") as response:
        return await endpoint.read_body(response)


async def fault_of(endpoint: Endpoint) -> TransportFault:
    with pytest.raises(TransportFailedError) as failed:
        await answer_of(endpoint)
    return failed.value.fault


async def texts_of(endpoint: Endpoint) -> list[bytes]:
    async with endpoint.request("POST", {}, b"{}") as response:
        events = endpoint.read_events(response, Pace())
        return [event.data async for event in events if isinstance(event, StreamEvent)]


@asynccontextmanager
async def a_model(server: Server, *, reply_limits: ReplyLimits | None = None) -> AsyncIterator[OpenAICompatibleModels]:
    http = AiohttpProviders(OutboundSessions(ssl_context=ssl.create_default_context, keepalive_s=50.0))
    provider = ProviderConfig(name="local", kind=ProviderKind.OPENAI, base_url=f"{server.url}/v1")
    try:
        yield OpenAICompatibleModels(provider=provider, http=http, reply_limits=reply_limits)
    finally:
        await http.aclose()


async def failure_of(model: OpenAICompatibleModels) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await all_events(model.stream(a_request("local:x")))
    return raised.value
