"""What grows, and must not: a turn of a long run, a call where there are many tools, an event that many follow; and what a run
leaves in the database.

`python -m benchmarks --only growth`.
"""

import asyncio
import json
import statistics
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import pairwise

from benchmarks.calls import answered, post_request, tool_call
from benchmarks.counterparts import TOOL, model_answers
from benchmarks.processes import counterpart
from benchmarks.raw_http import RawClient, serve
from benchmarks.runs import TOOL_CALLS, drive
from benchmarks.service import Service, running_service
from benchmarks.upstreams import MODERN, UPSTREAMS

TURNS, LONG_RUNS, STRETCH = 200, 4, 20
TOOLS = (10, 1_000, 10_000)
CALLS, CALLS_WARM_UP = 2_000, 500
LISTENERS, FOLLOWED_TURNS, FOLLOWED_RUNS = (1, 100), 40, 3
STORED_RUNS = 300

_LIMITS = {"DRAGOMAN_KEY_RATE_LIMIT": "1000000/1", "DRAGOMAN_MCP_RATE_LIMIT": "1000000/1"}


class WatchedModel:
    """Asks for a tool again and again, and notes the CPU of the service whenever it is asked itself."""

    def __init__(self) -> None:
        self.service: Service | None = None
        self.at: list[float] = []
        self._calling, self._done = model_answers(TOOL.replace("bench", "modern"))

    def answer(self, _: bytes, body: bytes) -> bytes:
        """An answer of a streamed chat-completions endpoint."""
        if self.service is not None:
            self.at.append(self.service.exact_cpu_s())
        return self._done if body.count(b'"role":"tool"') >= TURNS else self._calling


async def turns() -> list[str]:
    """CPU of a turn, early and late in a run of many; beside it what encoding so long a conversation anew would take."""
    model = WatchedModel()
    spent: list[list[float]] = []
    async with await serve(model.answer) as server:
        port = server.sockets[0].getsockname()[1]
        with ExitStack() as stack:
            mcp_port = stack.enter_context(counterpart("mcp-modern"))
            service = stack.enter_context(running_service(_model(port)))
            limits = {"max_turns": TURNS + 10, "max_tool_calls": TURNS + 10, "context_tokens": 1_000_000}
            await asyncio.to_thread(_agent, service, mcp_port, model="openai:bench", limits=limits)
            client = RawClient(service.port)
            model.service = service
            for _ in range(LONG_RUNS + 1):
                model.at.clear()
                await _run(client, service)
                spent.append([(later - earlier) * 1000 for earlier, later in pairwise(model.at)])
            await client.close()
    by_turn = [statistics.median(run[turn] for run in spent[1:]) for turn in range(TURNS)]
    places = (10, 100, TURNS)
    figures = {place: statistics.mean(by_turn[max(0, place - STRETCH) : place]) for place in places}
    return [
        "| turn of a run | CPU ms | of turn 10 |",
        "|---|---|---|",
        *(f"| {place} | {figures[place]:.2f} | {figures[place] / figures[10]:.2f} |" for place in places),
    ]


def tools() -> list[str]:
    """CPU of a call through the gateway to a server with few tools and with many."""
    rows = []
    first = 0.0
    for number in TOOLS:
        with ExitStack() as stack:
            mcp_port = stack.enter_context(counterpart("mcp-modern", str(number)))
            service = stack.enter_context(running_service({**_model(1), **_LIMITS}))
            _agent(service, mcp_port, model="openai:bench")
            opened = service.post("/gateway-sessions", {"agent_id": "agent"})
            body, headers = tool_call("mcp__modern__echo", MODERN)
            headers["Authorization"] = f"Bearer {opened['token']}"
            request = post_request(service.port, "/mcp", body, headers)
            answered(service.port, request, calls=CALLS_WARM_UP, concurrency=16)
            before = service.cpu_s()
            answered(service.port, request, calls=CALLS, concurrency=16)
            cpu_ms = (service.cpu_s() - before) * 1000 / CALLS
            first = first or cpu_ms
            rows.append(f"| {number:,} | {cpu_ms:.3f} | {cpu_ms / first:.2f} | {service.resident_mb():.0f} |")
    return ["| tools | CPU ms per gateway call | of that with 10 | resident MB |", "|---|---|---|---|", *rows]


async def listeners() -> list[str]:
    """CPU of a run that is followed by one client and by many, and from that of an event for each more."""
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", "1", "0.01"))
        mcp_port = stack.enter_context(counterpart("mcp-modern"))
        service = stack.enter_context(running_service({**_model(model_port), **_LIMITS}))
        limits = {"max_turns": FOLLOWED_TURNS + 10, "max_tool_calls": FOLLOWED_TURNS + 10}
        model = f"openai:calls-{FOLLOWED_TURNS}-modern"
        await asyncio.to_thread(_agent, service, mcp_port, model=model, limits=limits)
        await _followed(service, 1)
        spent, events = {}, 0
        for number in LISTENERS:
            runs = [await _followed(service, number) for _ in range(FOLLOWED_RUNS)]
            spent[number] = statistics.median(cpu_ms for cpu_ms, _ in runs)
            events = runs[0][1]
    few, many = LISTENERS
    each_us = (spent[many] - spent[few]) * 1000 / (many - few) / events
    return [
        f"A run of {events} events takes {spent[few]:.0f} ms of CPU with {few} listener and {spent[many]:.0f} ms with {many}: "
        f"{each_us:.0f} µs for an event and listener, {spent[few] * 1000 / events:.0f} µs for an event that is made, stored "
        "and sent to the first.",
    ]


async def _followed(service: Service, number: int) -> tuple[float, int]:
    """CPU milliseconds of a run with so many listeners, and how many events each of them got."""
    before = service.cpu_s()
    started = await asyncio.to_thread(service.post, "/runs", {"agent": "agent", "input": "go"})
    request = (
        f"GET /v1/runs/{started['id']}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {service.key}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()

    async def listen() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(request)
        received = await reader.read()
        writer.close()
        if b"event: end" not in received:
            raise SystemExit(f"a stream broke off: {received[-300:]!r}")
        return received.count(b"\nid: ") + received.count(b"\r\nid: ")

    counts = await asyncio.gather(*(listen() for _ in range(number)))
    if len(set(counts)) != 1:
        raise SystemExit(f"listeners of one run were sent different events: {sorted(set(counts))}")
    return (service.cpu_s() - before) * 1000, counts[0]


def stored() -> list[str]:
    """What runs leave in an SQLite database."""
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", str(TOOL_CALLS)))
        mcp_port = stack.enter_context(counterpart("mcp-modern"))
        service = stack.enter_context(running_service(_model(model_port)))
        _agent(service, mcp_port, model=f"openai:calls-{TOOL_CALLS}-modern")
        sizes = [service.database_bytes()]
        for _ in range(2):
            asyncio.run(drive(service, "agent", runs=STORED_RUNS, concurrency=16))
            sizes.append(service.database_bytes())
    first, second = ((later - earlier) / STORED_RUNS / 1024 for earlier, later in pairwise(sizes))
    return [
        f"A run of {TOOL_CALLS} tool calls leaves {first:.1f} KB in the database, with its thread, messages, events, ledger, "
        f"audit entries and their indexes; {second:.1f} KB after {STORED_RUNS} others."
    ]


def _model(port: int) -> dict[str, str]:
    return {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}


def _agent(service: Service, mcp_port: int, *, model: str, limits: dict[str, int] | None = None) -> None:
    [modern] = [upstream for upstream in UPSTREAMS if upstream.slug == "modern"]
    service.post("/mcp-servers", modern.config(mcp_port))
    service.post("/agents", {"name": "agent", "model": model, "mcp_servers": ["modern"], "limits": limits or {}})


async def _run(client: RawClient, service: Service) -> None:
    body = json.dumps({"agent": "agent", "input": "go"}).encode()
    status, answer = await client.post("/v1/runs/wait", body, f"Authorization: Bearer {service.key}\r\n")
    if status != 200 or json.loads(answer)["run"]["status"] != "completed":
        raise SystemExit(f"a run did not complete: {status} {answer[:500]!r}")


def report() -> list[str]:
    """All of it."""
    parts: Iterable[list[str]] = (
        asyncio.run(turns()),
        tools(),
        [*asyncio.run(listeners()), *stored()],
    )
    return [line for part in parts for line in (*part, "")][:-1]
