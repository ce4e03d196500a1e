"""The floor of a gateway: a Litestar handler that hands a request on over kept connections, and its
answer back.

`python -m benchmarks.relay URL` prints its port.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
import uvloop
from litestar import Litestar, MediaType, Request, Response, post
from litestar.datastructures import State


def relay(url: str) -> Litestar:
    """One route, no control: no session, no policy, no ledger, no audit, no limits."""
    upstream: list[aiohttp.ClientSession] = []

    @asynccontextmanager
    async def connected(_: Litestar) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            upstream.append(session)
            yield

    @post("/mcp", media_type=MediaType.JSON, status_code=200)
    async def hand_on(request: "Request[None, None, State]") -> Response[bytes]:
        body = await request.body()
        async with upstream[0].post(url, data=body, headers={"content-type": "application/json"}) as answer:
            return Response(await answer.read(), media_type=MediaType.JSON)

    return Litestar([hand_on], lifespan=[connected], openapi_config=None, logging_config=None)


async def _serve(url: str) -> None:
    config = uvicorn.Config(relay(url), log_level="error", access_log=False, loop="none", http="httptools")
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        print(listener.getsockname()[1], flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(sys.argv[1]))
