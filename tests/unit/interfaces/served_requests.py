"""The HTTP server over an application that says what it was sent, and clients of it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import uvicorn
from litestar.types import ASGIApp

from interfaces.inbound import Inbound, InboundLimits

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class App:
    """Says what it was sent; does as the body tells it."""

    def __init__(self) -> None:
        self.requests = 0
        self.left = asyncio.Event()
        self.is_waiting = asyncio.Event()
        self.may_read = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request (ASGI)."""
        self.requests += 1
        if scope["path"] == "/refused":
            await self._start(send, 2, status=401)
            await send({"type": "http.response.body", "body": b"no"})
        elif scope["path"] == "/unread":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            self.is_waiting.set()
            await self.may_read.wait()
        else:
            if scope["path"] == "/later":
                self.is_waiting.set()
                await self.may_read.wait()
            await self._read_and_answer(scope, receive, send)

    async def _read_and_answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left.set()
                return
            body += message["body"]
            if not message["more_body"]:
                break
        match body:
            case b"stream":
                await send({"type": "http.response.start", "status": 200, "headers": [(b"x-kind", b"stream")]})
                for part in (b"one", b"two"):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            case b"parts":
                await self._start(send, 6)
                await send({"type": "http.response.body", "body": b"one", "more_body": True})
                await send({"type": "http.response.body", "body": b"two", "more_body": False})
            case b"crash":
                raise RuntimeError("before the answer")
            case b"leave":
                self.is_waiting.set()
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.left.set()
            case b"missing":
                head = [(b"x-kind", b"missing"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 404, "headers": head})
                await send({"type": "http.response.body", "body": b""})
            case b"close":
                head = [(b"content-length", b"2"), (b"connection", b"close")]
                await send({"type": "http.response.start", "status": 200, "headers": head})
                await send({"type": "http.response.body", "body": b"ok"})
            case _:
                said = b"%s %s %d" % (scope["method"].encode(), scope["path"].encode(), len(body))
                await self._start(send, len(said))
                await send({"type": "http.response.body", "body": said, "more_body": False})

    async def _start(self, send: Send, length: int, *, status: int = 200) -> None:
        head = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % length)]
        await send({"type": "http.response.start", "status": status, "headers": head})


class Client:
    """Bytes to and from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, *requests: bytes) -> list[bytes]:
        """The answers: status line and body of each."""
        self.writer.write(b"".join(requests))
        return [await self.answer() for _ in requests]

    async def answer(self) -> bytes:
        """One answer; a chunked one as its chunks are on the wire."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        status = head.partition(b"\r\n")[0]
        if b"transfer-encoding: chunked" in head:
            return status + b" " + await self.reader.readuntil(b"0\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return status + b" " + await self.reader.readexactly(length)


@asynccontextmanager
async def served(app: App, limits: InboundLimits | None = None, **settings: Any) -> AsyncIterator[Callable[[], Any]]:
    """A server; what is yielded connects to it."""
    inbound = Inbound(cast(ASGIApp, app), limits or InboundLimits())
    config = uvicorn.Config(
        cast(Any, inbound),
        http=cast("type[asyncio.Protocol]", inbound.protocol),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        loop="none",
        **settings,
    )
    server = uvicorn.Server(config)
    clients: list[Client] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])

        async def connected() -> Client:
            client = Client(*await asyncio.open_connection("127.0.0.1", port))
            clients.append(client)
            return client

        try:
            async with asyncio.timeout(60):
                yield connected
        finally:
            for client in clients:
                client.writer.close()
                with suppress(OSError):
                    await client.writer.wait_closed()
            await server.shutdown(sockets=[listener])


def posted(body: bytes, *, path: bytes = b"/mcp", extra: bytes = b"", version: bytes = b"1.1") -> bytes:
    """A request."""
    head = b"POST %s HTTP/%s\r\nHost: here\r\n%sContent-Length: %d\r\n\r\n" % (path, version, extra, len(body))
    return head + body
