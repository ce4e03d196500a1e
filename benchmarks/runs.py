"""Runs over HTTP, created and awaited, everything on: beside the same calls over raw sockets, in the same measurement.

`python -m benchmarks --only runs`, or `runs-on-postgresql`.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.postgres import migrated_database
from benchmarks.processes import ROOT, counterpart
from benchmarks.raw_http import RawClient
from benchmarks.service import Service, running_service
from benchmarks.upstreams import UPSTREAMS

TOOL_CALLS = 3
RUNS, WARM_UP = 400, 60
CONCURRENCIES = (1, 16, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """`runs` runs of `TOOL_CALLS` tool calls: wall time, CPU of the measured process, latencies of single runs."""

    runs: int
    wall_s: float
    cpu_s: float
    latencies_s: tuple[float, ...] = ()

    @property
    def runs_per_s(self) -> float:
        """Throughput."""
        return self.runs / self.wall_s

    @property
    def cpu_ms_per_iteration(self) -> float:
        """CPU for one tool-call iteration; the closing model call counts as part of the iterations."""
        return self.cpu_s * 1000 / (self.runs * TOOL_CALLS)

    def percentile_ms(self, percent: int) -> float:
        """A latency."""
        return statistics.quantiles(self.latencies_s, n=100)[percent - 1] * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How the model answers, over what the tool is called, and how many runs there are at a time."""

    title: str
    model: str
    upstream: str
    concurrency: int


def cases(*, all_kinds: bool) -> list[Case]:
    """At each concurrency; at 16 of each kind, if `all_kinds`."""
    modern = [
        Case(title="HTTP, streamed", model=f"calls-{TOOL_CALLS}-modern", upstream="modern", concurrency=concurrency)
        for concurrency in CONCURRENCIES
    ]
    others = [
        Case(title="HTTP, whole answers", model=f"whole-{TOOL_CALLS}-modern", upstream="modern", concurrency=16),
        Case(title="stdio, streamed", model=f"calls-{TOOL_CALLS}-stdio", upstream="stdio", concurrency=16),
        Case(title="stdio, whole answers", model=f"whole-{TOOL_CALLS}-stdio", upstream="stdio", concurrency=16),
    ]
    return modern + (others if all_kinds else [])


def floor(model_port: int, mcp_port: int, concurrency: int) -> Measured:
    """The same work with raw sockets and one commit per run."""
    arguments = [model_port, mcp_port, RUNS, concurrency, TOOL_CALLS]
    printed = subprocess.run(
        [sys.executable, "-m", "benchmarks.floor", *map(str, arguments)],
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
    ).stdout
    figures = json.loads(printed)
    return Measured(runs=RUNS, wall_s=figures["wall_s"], cpu_s=figures["cpu_s"])


async def drive(service: Service, agent: str, *, runs: int, concurrency: int, ends_as: str = "completed") -> Measured:
    """Create and wait for `runs` runs. Raises SystemExit if one does not end so."""
    left = iter(range(runs))
    latencies: list[float] = []
    body = json.dumps({"agent": agent, "input": "go"}).encode()
    headers = f"Authorization: Bearer {service.key}\r\n"

    async def worker() -> None:
        client = RawClient(service.port)
        for _ in left:
            began = time.perf_counter()
            status, answer = await client.post("/v1/runs/wait", body, headers)
            latencies.append(time.perf_counter() - began)
            if status != 200 or json.loads(answer)["run"]["status"] != ends_as:
                raise SystemExit(f"a run did not become {ends_as}: {status} {answer[:500]!r}")
        await client.close()

    cpu_before, began = service.cpu_s(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    wall_s = time.perf_counter() - began
    return Measured(runs=runs, wall_s=wall_s, cpu_s=service.cpu_s() - cpu_before, latencies_s=tuple(latencies))


def report(*, postgres: bool = False) -> list[str]:
    """A table, and memory."""
    rows = [
        "| MCP, model | concurrency | runs/s | p50 ms | p99 ms | CPU ms per iteration | floor: runs/s | floor: CPU ms per "
        "iteration | CPU ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", str(TOOL_CALLS)))
        mcp_port = stack.enter_context(counterpart("mcp-modern"))
        extra = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1"}
        if postgres:
            extra["DRAGOMAN_DATABASE_URL"] = stack.enter_context(migrated_database())
            extra["DRAGOMAN_SECRET_KEY"] = "the key of a benchmark"
        service = stack.enter_context(running_service(extra))
        idle_mb = service.resident_mb()
        for upstream in UPSTREAMS:
            if upstream.slug in ("modern", "stdio"):
                service.post("/mcp-servers", upstream.config(mcp_port if upstream.slug == "modern" else None))
        measured_cases, done = cases(all_kinds=not postgres), 0
        for number, case in enumerate(measured_cases):
            agent = {"name": f"case-{number}", "model": f"openai:{case.model}", "mcp_servers": [case.upstream]}
            service.post("/agents", agent)
            asyncio.run(drive(service, f"case-{number}", runs=WARM_UP, concurrency=8))
            done += WARM_UP
        floors = {concurrency: floor(model_port, mcp_port, concurrency) for concurrency in CONCURRENCIES}
        for number, case in enumerate(measured_cases):
            runs = RUNS // 2 if case.concurrency == 1 else RUNS
            ours = asyncio.run(drive(service, f"case-{number}", runs=runs, concurrency=case.concurrency))
            rows.append(_row(case, ours, floors[case.concurrency]))
            done += runs
        loaded_mb = service.resident_mb()
    return [*rows, "", f"Resident memory {idle_mb:.0f} MB before and {loaded_mb:.0f} MB after {done} runs."]


def _row(case: Case, ours: Measured, base: Measured) -> str:
    return (
        f"| {case.title} | {case.concurrency} | {ours.runs_per_s:.0f} | {ours.percentile_ms(50):.1f} "
        f"| {ours.percentile_ms(99):.1f} | {ours.cpu_ms_per_iteration:.2f} | {base.runs_per_s:.0f} "
        f"| {base.cpu_ms_per_iteration:.2f} | {ours.cpu_ms_per_iteration / base.cpu_ms_per_iteration:.1f} |"
    )
