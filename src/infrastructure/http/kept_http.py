"""HTTP/1.1 POSTs over kept connections, to MCP servers and models: one write per request, one wake-up per answer.

A general client costs five times as much per call, most of it in objects per request. Below: `kept_connection.py`; who may be
reached is looked at by the caller (URLs) and by `resolve` (addresses, which are connected to as they were found).
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from infrastructure.http.kept_connection import HttpAnswer, KeptConnection, Origin

KEPT_FOR_S = 4.0
"""How long an unused connection is kept: less than the 5 s of Node.js and uvicorn. A call that meets a connection as its server ends
it has an unknown outcome, which a new connection costs less than."""
OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""What a request says of itself: on a connection that several servers' requests may share, nobody else does."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host that may be connected to. Raises OSError."""


class NotConnectedError(Exception):
    """No address of the origin could be connected to: nothing was sent."""


def head_of(origin: Origin, target: str, headers: Mapping[str, str]) -> bytes:
    """The head of a POST up to its length. Raises ValueError for a header that would be several."""
    lines = [f"POST {target} HTTP/1.1\r\nHost: {origin.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items() if name not in OWN_HEADERS]
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) or head.count("\r") != len(lines) or "\0" in head:
        raise ValueError("a header may not contain line ends")
    return f"{head}\r\nContent-Length: ".encode()


def is_event_stream(content_type: str) -> bool:
    """Whether a body of this type, in lower case, is handed on as it comes."""
    return content_type.startswith("text/event-stream")


class KeptConnections:
    """Connections by origin, each of one request at a time. `context` is asked for at the first https origin; `streams` says by
    their type which bodies are handed on as they come."""

    def __init__(
        self,
        *,
        resolve: Resolve,
        context: Callable[[], ssl.SSLContext],
        connect_timeout_s: float,
        kept_for_s: float = KEPT_FOR_S,
        streams: Callable[[str], bool] = is_event_stream,
    ) -> None:
        self.streams = streams
        self._resolve = resolve
        self._context = context
        self._connect_timeout_s = connect_timeout_s
        self._kept_for_s = kept_for_s
        self._idle: dict[Origin, deque[KeptConnection]] = {}
        self._open: set[KeptConnection] = set()
        self._sweep: asyncio.TimerHandle | None = None

    async def post(
        self, origin: Origin, head: bytes, body: bytes, *, limit: int, wait_s: float | None = None
    ) -> HttpAnswer:
        """The answer to a request; of a body over `limit` only its size is known. Raises NotConnectedError, BrokenError, and
        TimeoutError if it takes the server over `wait_s`; cancelling the wait ends the connection, which tells the server."""
        connection = self.take(origin) or await self._connected(origin)
        return await connection.ask(head, body, limit, wait_s)

    async def close(self) -> None:
        """Ends every connection."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._idle.clear()
        for connection in list(self._open):
            connection.abort()

    def put_back(self, connection: "KeptConnection") -> None:
        """A connection is free again."""
        self._idle.setdefault(connection.origin, deque()).append(connection)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._kept_for_s, self._end_unused)

    def ended(self, connection: "KeptConnection") -> None:
        """A connection is gone."""
        self._open.discard(connection)
        idle = self._idle.get(connection.origin)
        if idle is not None and connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[connection.origin]

    def take(self, origin: Origin) -> "KeptConnection | None":
        """A connection that is free, to be asked at once: the one used last, so that those which are not needed grow old."""
        idle = self._idle.get(origin)
        oldest = asyncio.get_running_loop().time() - self._kept_for_s
        while idle:
            connection = idle.pop()
            if connection.used_at <= oldest:
                connection.abort()
            elif not connection.is_over:
                return connection
        return None

    async def _connected(self, origin: Origin) -> "KeptConnection":
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                addresses = await self._resolve(origin.host, origin.port)
                for number, address in enumerate(addresses, 1):
                    try:
                        _, connection = await loop.create_connection(
                            lambda: KeptConnection(self, origin),
                            address,
                            origin.port,
                            ssl=self._context() if origin.is_tls else None,
                            server_hostname=origin.host if origin.is_tls else None,
                        )
                    except OSError:
                        if number == len(addresses):
                            raise
                    else:
                        self._open.add(connection)
                        return connection
        except (OSError, TimeoutError) as exc:
            raise NotConnectedError from exc
        raise NotConnectedError

    def _end_unused(self) -> None:
        self._sweep = None
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._kept_for_s
        for origin, idle in list(self._idle.items()):
            while idle and idle[0].used_at <= oldest:
                idle.popleft().abort()
            if not idle:
                self._idle.pop(origin, None)
        if self._idle:
            self._sweep = loop.call_later(self._kept_for_s, self._end_unused)
