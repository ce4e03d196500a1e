"""A receiver of webhooks on a port of this machine, which keeps what it gets and answers as it is
told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`answers` by what number the request has, the last one for all that follow."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answers: list[Callable[[web.Request], web.StreamResponse]] = field(default_factory=list)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.received.append(Received(request.path, dict(request.headers), await request.read()))
        async with self.arrived:
            self.arrived.notify_all()
        if not self.answers:
            return web.Response(status=204)
        return self.answers[min(len(self.received), len(self.answers)) - 1](request)

    async def until(self, count: int) -> list[Received]:
        """Wait for so many requests."""
        async with asyncio.timeout(WAIT_S), self.arrived:
            await self.arrived.wait_for(lambda: len(self.received) >= count)
        return self.received


@asynccontextmanager
async def receiving(*answers: Callable[[web.Request], web.StreamResponse]) -> AsyncIterator[Receiver]:
    """A receiver that answers so, or 204."""
    receiver = Receiver(answers=list(answers))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    receiver.url = str(server.make_url("/hook"))
    try:
        yield receiver
    finally:
        await server.close()
