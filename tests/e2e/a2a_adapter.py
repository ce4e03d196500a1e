"""A way to the service for the compatibility kit of A2A, which knows neither keys nor our agents:
requests get a key. Its messages say by the prefix of their id what an agent does, so the scripted
model reads the id in the text. The kit sends several messages with one id, which are one task for
us, so they get numbers. What is answered by a schema goes to an agent with one."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

import aiohttp
from aiohttp import web

_HOP = frozenset({"host", "content-length", "transfer-encoding", "connection", "authorization", "content-encoding"})


class Adapter:
    """Forwards to `target`, with `key`."""

    def __init__(self) -> None:
        self.target = ""
        self.key = ""
        self.url = ""
        self._numbers = count(1)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        headers["Authorization"] = f"Bearer {self.key}"
        body = self._said(await request.read())
        path = str(request.rel_url)
        if b"tck-artifact-data" in body:
            path = path.replace("/tck", "/tck-data", 1)
        url = f"{self.target}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, url, data=body, headers=headers) as answer,
        ):
            sent = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            response = web.StreamResponse(status=answer.status, headers=sent)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    def _said(self, body: bytes) -> bytes:
        """The body; a text is followed by the id of its message."""
        try:
            given = json.loads(body)
            message = given.get("params", given)["message"]
            message["parts"][0]["text"] += f" [{message['messageId']} {next(self._numbers)}]"
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return body
        return json.dumps(given).encode()


@asynccontextmanager
async def adapter() -> AsyncGenerator[Adapter]:
    """The adapter on a free port; `target` and `key` are set once the service runs."""
    made = Adapter()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", made.forward)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()
