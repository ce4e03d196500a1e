"""What grows, and must not: a turn of a long run, a call where there are many tools, an event that
many follow; and what a run leaves in the database.

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
from benchmarks.figures import Budget, held
from benchmarks.processes import counterpart
from benchmarks.raw_http import RawClient, serve
from benchmarks.runs import TOOL_CALLS, drive, floor
from benchmarks.service import Service, running_service
from benchmarks.upstreams import MODERN, UPSTREAMS

TURNS, LONG_RUNS = 200, 6
STRETCHES = ((1, 10), (81, 100), (181, 200))
TOOLS = (10, 1_000, 10_000)
CALLS, CALL_ROUNDS = 600, 7
LISTENERS, FOLLOWED_TURNS, FOLLOWED_RUNS = (1, 100), 40, 3
STORED_RUNS = 300

_TURN = Budget(what="CPU of turns 81–100 of a run", limit=1.05, unit="of turns 1–10's")
_CALL = Budget(what="CPU of a call with 10,000 tools", limit=1.1, unit="of one with 10's")

_LIMITS = {"DRAGOMAN_KEY_RATE_LIMIT": "1000000/1", "DRAGOMAN_MCP_RATE_LIMIT": "1000000/1"}


class WatchedModel:
    """Asks for a tool again and again, and notes the CPU of the service whenever it is asked
    itself."""

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
    """CPU of a turn, early and late in a run of many; beside it what encoding so long a
    conversation anew would take."""
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
    figures = {last: statistics.mean(by_turn[first - 1 : last]) for first, last in STRETCHES}
    [early, later, *_] = figures.values()
    return [
        "| turns of a run | CPU ms each | of the first ten |",
        "|---|---|---|",
        *(f"| {first}–{last} | {figures[last]:.2f} | {figures[last] / early:.2f} |" for first, last in STRETCHES),
        *held((_TURN, later / early)),
    ]


def tools() -> list[str]:
    """CPU of a call through the gateway to a server with few tools and with many, each called in
    turns."""
    with ExitStack() as stack:
        services: dict[int, tuple[Service, bytes]] = {}
        for number in TOOLS:
            mcp_port = stack.enter_context(counterpart("mcp-modern", str(number)))
            service = stack.enter_context(running_service({**_model(1), **_LIMITS}))
            _agent(service, mcp_port, model="openai:bench")
            opened = service.post("/gateway-sessions", {"agent_id": "agent"})
            body, headers = tool_call("mcp__modern__echo", MODERN)
            headers["Authorization"] = f"Bearer {opened['token']}"
            services[number] = service, post_request(service.port, "/mcp", body, headers)
        rounds = [{number: _call_ms(*services[number]) for number in TOOLS} for _ in range(CALL_ROUNDS + 1)][1:]
        resident = {number: services[number][0].resident_mb() for number in TOOLS}
    few, *_, many = TOOLS
    spent = {number: statistics.median(figures[number] for figures in rounds) for number in TOOLS}
    ratios = {number: statistics.median(figures[number] / figures[few] for figures in rounds) for number in TOOLS}
    return [
        "| tools | CPU ms per gateway call | of that with 10 | resident MB |",
        "|---|---|---|---|",
        *(f"| {number:,} | {spent[number]:.3f} | {ratios[number]:.2f} | {resident[number]:.0f} |" for number in TOOLS),
        *held((_CALL, ratios[many])),
    ]


def _call_ms(service: Service, request: bytes) -> float:
    before = service.exact_cpu_s()
    answered(service.port, request, calls=CALLS, concurrency=16)
    return (service.exact_cpu_s() - before) * 1000 / CALLS


async def listeners() -> list[str]:
    """CPU of a run that is followed by one client and by many, and from that of an event for each
    more."""
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", "1", "0.01"))
        mcp_port = stack.enter_context(counterpart("mcp-modern"))
        service = stack.enter_context(running_service({**_model(model_port), **_LIMITS}))
        limits = {"max_turns": FOLLOWED_TURNS + 10, "max_tool_calls": FOLLOWED_TURNS + 10}
        model = f"openai:calls-{FOLLOWED_TURNS}-modern"
        await asyncio.to_thread(_agent, service, mcp_port, model=model, limits=limits)
        await _followed(service, 1)
        spent, events = {}, 0
        for number in (0, *LISTENERS):
            runs = [await _followed(service, number) for _ in range(FOLLOWED_RUNS)]
            spent[number] = statistics.median(cpu_ms for cpu_ms, _ in runs)
            events = max(events, runs[0][1])
    few, many = LISTENERS
    each_us = (spent[many] - spent[few]) * 1000 / (many - few) / events
    first_us = (spent[few] - spent[0]) * 1000 / events
    rows = [f"| {number} | {spent[number]:.0f} | {spent[number] * 1000 / events:.0f} |" for number in (0, *LISTENERS)]
    return [
        f"| listeners of a run of {FOLLOWED_TURNS} turns and {events} events | CPU ms of the run | µs per event |",
        "|---|---|---|",
        *rows,
        "",
        f"An event takes {first_us:.0f} µs for the first listener, and {each_us:.0f} µs for each of {many - few} more.",
    ]


async def _followed(service: Service, number: int) -> tuple[float, int]:
    """CPU milliseconds of a run with so many listeners, and how many events each of them got.
    Without any it is waited for."""
    before = service.exact_cpu_s()
    if not number:
        client = RawClient(service.port)
        await _run(client, service)
        await client.close()
        return (service.exact_cpu_s() - before) * 1000, 0
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
        return received.count(b"\nid: ")  # at the start of a chunk too, whose length is a line

    counts = await asyncio.gather(*(listen() for _ in range(number)))
    if len(set(counts)) != 1:
        raise SystemExit(f"listeners of one run were sent different events: {sorted(set(counts))}")
    return (service.exact_cpu_s() - before) * 1000, counts[0]


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
        base_kb = floor(model_port, mcp_port, 16, runs=STORED_RUNS).stored_bytes / 1024
    first, second = ((later - earlier) / STORED_RUNS / 1024 for earlier, later in pairwise(sizes))
    return [
        f"A run of {TOOL_CALLS} tool calls leaves {first:.1f} KB in the database, with its thread, messages, events, ledger, "
        f"audit entries and their indexes; {second:.1f} KB after {STORED_RUNS} others. Its bare transcript, as the floor stores it, "
        f"is {base_kb:.1f} KB: a ratio of {second / base_kb:.0f}."
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
