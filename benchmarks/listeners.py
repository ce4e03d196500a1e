"""What it costs the service that many browsers look at one run: `python -m benchmarks.listeners`.

A model streams a delta every 25 ms; the service's CPU is measured without listeners and with them.
What listeners cost is the difference, as a share of one core.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from benchmarks.figures import Budget, held
from benchmarks.service import Service, running_service

LISTENERS = 50
DELTAS_PER_S = 40
STREAMED_S = 12.0
_COST = Budget(what="CPU that 50 more listeners of a run take", limit=10, unit="% of a core")
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def slow_model(streamed_s: float) -> AsyncIterator[int]:
    """A chat-completions endpoint that says a few words every 25 ms; yields its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        await reader.readexactly(int(lengths[0]))
        writer.write(_ANSWER)
        for _ in range(int(streamed_s * DELTAS_PER_S)):
            writer.write(_chunk({"choices": [{"index": 0, "delta": {"content": "and so it goes on, "}}]}))
            await writer.drain()
            await asyncio.sleep(1 / DELTAS_PER_S)
        writer.write(_chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        writer.write(_chunk({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}))
        writer.write(b"data: [DONE]\n\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _chunk(fields: dict[str, object]) -> bytes:
    return (
        f"data: {json.dumps({'id': 'c', 'object': 'chat.completion.chunk', 'model': 'bench', **fields})}\n\n".encode()
    )


async def signed_in(service: Service) -> str:
    """The cookie of somebody at a browser."""
    form = urlencode({"key": service.key})
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(
        f"POST /console/sign-in HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nConnection: close\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n{form}".encode()
    )
    head = (await reader.read()).decode("latin-1")
    writer.close()
    return next(
        line.split(":", 1)[1].split(";")[0].strip() for line in head.splitlines() if "set-cookie" in line.lower()
    )


async def listen(service: Service, run_id: str, cookie: str) -> int:
    """The stream of a run's page until it ends; how many events came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    path = f"/console/runs/{run_id}/stream?after=0"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nCookie: {cookie}\r\n\r\n".encode())
    events, last = 0, b""
    while b"event: end\n" not in last:
        got = await reader.read(65536)
        if not got:
            raise SystemExit("a stream broke off")
        events += got.count(b"id: ")
        last = last[-20:] + got
    writer.close()
    return events


async def cores(service: Service, listeners: int) -> tuple[float, int]:
    """Cores that the service used while a run was streamed to some listeners, and the events that
    each of them got."""
    cookie = await signed_in(service)
    before, began = service.cpu_s(), time.perf_counter()
    run_id = str((await asyncio.to_thread(service.post, "/runs", {"agent": "talker", "input": "go"}))["id"])
    got = await asyncio.gather(*(listen(service, run_id, cookie) for _ in range(max(listeners, 1))))
    if len(set(got)) != 1:
        raise SystemExit(f"listeners got different numbers of events: {sorted(set(got))}")
    return (service.cpu_s() - before) / (time.perf_counter() - began), got[0]


async def measure() -> list[str]:
    """The lines of the report."""
    async with slow_model(STREAMED_S) as port:
        environment = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
        with running_service(environment) as service:
            service.post("/agents", {"name": "talker", "model": "openai:bench"})
            await cores(service, 2)
            alone, _ = await cores(service, 1)
            many, events = await cores(service, LISTENERS + 1)
    cost = many - alone
    return [
        f"{LISTENERS} browsers more than one look at a run while its model says something {DELTAS_PER_S} times a second"
        f" ({events} events, of what comes within 50 ms",
        f"one): {cost * 100:.1f} % of one core; the run itself, with one of them,"
        f" {alone * 100:.1f} % (`python -m benchmarks.listeners`).",
        *held((_COST, cost * 100)),
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join(asyncio.run(measure())) + "\n")
