"""A relay before the gateway for clients that cannot be given a token: adds the bearer header and
leaves the rest as it is, Host and Origin included."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

_OF_A_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "te", "upgrade"}


@asynccontextmanager
async def relaying(url: str, token: str) -> AsyncIterator[str]:
    """The URL under which `url` is reached with the token. A client that leaves is passed on as
    one."""

    async def relay(request: web.Request) -> web.StreamResponse:
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _OF_A_HOP]
        body = await request.read()
        async with client.request(
            request.method,
            url,
            data=body or None,
            headers=[*headers, ("Authorization", f"Bearer {token}")],
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(status=answer.status, reason=answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in _OF_A_HOP:
                    response.headers.add(name, value)
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response

    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/mcp", relay)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None), skip_auto_headers={"User-Agent"}, auto_decompress=False
    ) as client:
        try:
            await site.start()
            port = runner.addresses[0][1]
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            await runner.cleanup()
