"""Sends HTTP requests into an ASGI app of this process, handing on each piece of the answer as soon as it is there.

httpx's own ASGITransport gives an answer only once it is complete, which a followed event stream never is.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import cast

import httpx

AsgiApp = Callable[..., Awaitable[None]]
"""An ASGI 3 application; frameworks type the scope and its callables in ways that do not agree."""

_AsgiMessage = MutableMapping[str, object]
_PIECES_AHEAD = 32
"""How many pieces an app may be ahead of its reader before `send` waits."""


class StreamingAsgiTransport(httpx.AsyncBaseTransport):
    """One task per request runs the app; closing the response early tells the app so, and ends it."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, as soon as its head is there. An exception of the app comes out as it is."""
        exchange = _Exchange(body=await request.aread())
        task = asyncio.create_task(exchange.run(self._app, _scope(request)))
        try:
            await exchange.answered.wait()
        except asyncio.CancelledError:
            await _end(task)
            raise
        if exchange.status is None:
            await task
            raise httpx.RemoteProtocolError("the app ended without an answer", request=request)
        return httpx.Response(exchange.status, headers=exchange.headers, stream=_Body(exchange, task))


class _Exchange:
    """What the app and the reader of its answer share."""

    def __init__(self, *, body: bytes) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.answered = asyncio.Event()
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES_AHEAD)
        self.complete = False
        self._body: bytes | None = body
        self._gone = asyncio.Event()

    async def run(self, app: AsgiApp, scope: dict[str, object]) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            self.answered.set()
            self._gone.set()
            if not self.complete:
                # Broken off, and the reader must learn it even if it is far behind.
                while self.pieces.full():
                    self.pieces.get_nowait()
                self.pieces.put_nowait(None)

    async def _receive(self) -> _AsgiMessage:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: _AsgiMessage) -> None:
        match message["type"]:
            case "http.response.start":
                self.status = cast(int, message["status"])
                self.headers = list(cast("Iterable[tuple[bytes, bytes]]", message.get("headers", ())))
                self.answered.set()
            case "http.response.body":
                if piece := cast(bytes, message.get("body", b"")):
                    await self.pieces.put(piece)
                if not message.get("more_body", False):
                    await self.pieces.put(None)
                    self.complete = True
                    self._gone.set()
            case _:
                pass


class _Body(httpx.AsyncByteStream):
    def __init__(self, exchange: _Exchange, task: "asyncio.Task[None]") -> None:
        self._exchange = exchange
        self._task = task

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._exchange.pieces.get()) is not None:
            yield piece
        await self._task
        if not self._exchange.complete:
            raise httpx.RemoteProtocolError("the app ended in the middle of its answer")

    async def aclose(self) -> None:
        if self._exchange.complete:
            # What the app still does after its answer is its own affair, but it belongs to this request.
            await _over(self._task)
        else:
            await _end(self._task)


async def _end(task: "asyncio.Task[None]") -> None:
    """Cancel and wait: nobody reads on."""
    task.cancel()
    await _over(task)


async def _over(task: "asyncio.Task[None]") -> None:
    """Wait until the app is through; how it ended is of no interest any more."""
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


def _scope(request: httpx.Request) -> dict[str, object]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (url.host, url.port),
        "client": ("127.0.0.1", 0),
        "state": {},
    }
