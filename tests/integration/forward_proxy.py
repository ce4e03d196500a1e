"""A little forward proxy of this machine: requests in absolute form, and tunnels by CONNECT (RFC
9110, section 9.3.6)."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class ForwardProxy:
    """Resolves the names in `places` (`host:port`) to ports of this machine, and refuses all
    others. With `credentials` (`user:password`), it wants them of each request."""

    def __init__(self, places: Mapping[str, int], *, credentials: str | None = None) -> None:
        self._places = places
        self._credentials = credentials
        self.url = ""
        self.requests: list[str] = []
        """First lines of requests, without the version."""
        self.heads: list[bytes] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ForwardProxy"]:
        tasks: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    await self._serve(reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        who = f"{self._credentials}@" if self._credentials else ""
        self.url = f"http://{who}127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        method, target, _ = line.decode().split(" ")
        self.heads.append(head)
        self.requests.append(f"{method} {target}")
        if self._credentials is not None:
            wanted = b"proxy-authorization: basic " + base64.b64encode(self._credentials.encode()).lower()
            if wanted not in head.lower():
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
        url = urlsplit(target if method != "CONNECT" else f"//{target}")
        place = self._places.get(f"{url.hostname}:{url.port or 80}")
        if place is None:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", place)
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
                own = [
                    each for each in fields.split(b"\r\n") if not each.lower().startswith((b"proxy-", b"connection:"))
                ]
                inner_writer.write(f"{method} {path} HTTP/1.1\r\nConnection: close\r\n".encode() + b"\r\n".join(own))
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
        finally:
            inner_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(64 * 1024):
            writer.write(data)
            await writer.drain()
    writer.close()
