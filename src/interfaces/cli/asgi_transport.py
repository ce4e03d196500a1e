"""Sends HTTP requests into an ASGI app of this process and streams the response. httpx's own
ASGITransport returns only complete responses, which event streams never are."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import cast

import httpx

AsgiApp = Callable[..., Awaitable[None]]
"""An ASGI 3 application; frameworks type the scope and its callables in ways that do not agree."""

_AsgiMessage = MutableMapping[str, object]
_PIECES_AHEAD = 32
"""Most chunks that an app may be ahead of its reader before `send` waits."""


class StreamingAsgiTransport(httpx.AsyncBaseTransport):
    """One task per request runs the app; closing the response early ends the task."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response, as soon as its head is available. Exceptions of the app are passed on."""
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
    """State shared by the app and the reader of its response."""

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
                # Interrupted: a slow reader must see it too.
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
            # The app may continue after its response, as part of this request.
            await _over(self._task)
        else:
            await _end(self._task)


async def _end(task: "asyncio.Task[None]") -> None:
    """Cancel the task and wait."""
    task.cancel()
    await _over(task)


async def _over(task: "asyncio.Task[None]") -> None:
    """Wait for the end of the app; its outcome is irrelevant."""
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
