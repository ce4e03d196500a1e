"""A web server for tests of tools that go out: each path is a function that writes what it likes to
the connection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Route = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(slots=True)
class WebServer:
    """Listens on 127.0.0.1 (`hosts` for more); remembers requests, and at which of its addresses
    they came in."""

    routes: dict[str, Route] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    sent: int = 0
    """Bytes written by routes that count them."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def page(
        self, path: str, body: bytes, content_type: str | None = "text/html; charset=utf-8", **headers: str
    ) -> None:
        """A page that is there; `content_encoding="gzip"` makes the header Content-Encoding."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answer(path, 200, body, **({"content-type": content_type} if content_type else {}), **given)

    def answer(self, path: str, status: int, body: bytes = b"", **headers: str) -> None:
        async def route(_: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(head(status, {"content-length": str(len(body)), **headers}) + body)

        self.routes[path] = route

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.addresses.append(writer.get_extra_info("sockname")[0])
            request = await _read(reader)
            self.requests.append(request)
            route = self.routes.get(request.path)
            if route is None:
                writer.write(head(404, {"content-length": "0"}))
            else:
                await route(request, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def web_server(*hosts: str) -> AsyncIterator[WebServer]:
    """A running one."""
    web = WebServer()
    server = await asyncio.start_server(web.serve, hosts[0] if hosts else "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    others = [await asyncio.start_server(web.serve, host, web.port) for host in hosts[1:]]
    try:
        yield web
    finally:
        for each in (server, *others):
            each.close()


def head(status: int, headers: dict[str, str]) -> bytes:
    """Status line and headers; the connection ends with the answer."""
    lines = [f"HTTP/1.1 {status} Text of the server", "connection: close"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode("latin-1")


async def _read(reader: asyncio.StreamReader) -> Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, target, _ = first.split(" ", 2)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)
