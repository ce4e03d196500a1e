"""`make bench`: CPU per tool-call iteration and runs per second over HTTP, as ratios to a floor measured beside them.

Prints a table; with `--write` it also goes to docs/performance.md. Absolute figures depend on the machine, ratios do not.
"""

import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import control, gateway, queue, run_start, workers
from benchmarks.processes import counterpart
from benchmarks.raw_http import RawClient
from benchmarks.service import Service, running_service

ROOT = Path(__file__).resolve().parent.parent
TOOL_CALLS = 3
RUNS = 400
WARM_UP = 40
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


async def drive(service: Service, agent: str, *, runs: int, concurrency: int) -> Measured:
    """Create and wait for `runs` runs. Raises SystemExit if one does not complete."""
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
            if status != 200 or json.loads(answer)["run"]["status"] != "completed":
                raise SystemExit(f"a run did not complete: {status} {answer[:500]!r}")
        await client.close()

    cpu_before, began = service.cpu_s(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    wall_s = time.perf_counter() - began
    return Measured(runs=runs, wall_s=wall_s, cpu_s=service.cpu_s() - cpu_before, latencies_s=tuple(latencies))


def prepare(service: Service, mcp_port: int) -> None:
    """The agents: one over an HTTP server, one over a stdio server."""
    service.post("/mcp-servers", {"slug": "bench", "kind": "http", "url": f"http://127.0.0.1:{mcp_port}/mcp"})
    service.post("/agents", {"name": "http", "model": "openai:bench", "mcp_servers": ["bench"]})


def measure() -> list[str]:
    """All measurements; returns the lines of the report."""
    rows: list[str] = []
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", str(TOOL_CALLS)))
        mcp_port = stack.enter_context(counterpart("mcp"))
        with running_service(
            {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1"}
        ) as service:
            prepare(service, mcp_port)
            idle_mb = service.resident_mb()
            asyncio.run(drive(service, "http", runs=WARM_UP, concurrency=8))
            for concurrency in CONCURRENCIES:
                base = floor(model_port, mcp_port, concurrency)
                ours = asyncio.run(drive(service, "http", runs=RUNS, concurrency=concurrency))
                rows.append(row(concurrency, ours, base))
            loaded_mb = service.resident_mb()
            ready_s = service.ready_s
    return [
        "| concurrency | runs/s | p50 ms | p99 ms | CPU ms per iteration | floor: runs/s | floor: CPU ms per iteration | CPU ratio |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"`serve` ready after {ready_s:.2f} s; resident {idle_mb:.0f} MB idle, {loaded_mb:.0f} MB after "
        f"{WARM_UP + RUNS * len(CONCURRENCIES)} runs.",
        "",
        *asyncio.run(run_start.measure()),
        "",
        *asyncio.run(control.report()),
        "",
        "Calls through the gateway, with a session token, policy, argument schema, ledger, audit and limits, to a server that "
        "says a text again; beside them the same",
        "calls sent to the server itself, and through a bare relay (Litestar and aiohttp, without any control) in the same run "
        "(`python -m benchmarks.gateway`).",
        "",
        *gateway.report(),
        "",
        *workers.report(),
        "",
        *queue.measure(),
    ]


def row(concurrency: int, ours: Measured, base: Measured) -> str:
    """One line of the table."""
    return (
        f"| {concurrency} | {ours.runs_per_s:.0f} | {ours.percentile_ms(50):.1f} | {ours.percentile_ms(99):.1f} "
        f"| {ours.cpu_ms_per_iteration:.2f} | {base.runs_per_s:.0f} | {base.cpu_ms_per_iteration:.2f} "
        f"| {ours.cpu_ms_per_iteration / base.cpu_ms_per_iteration:.1f} |"
    )


def main() -> int:
    """Measure, print, perhaps write."""
    began = datetime.now(UTC)
    lines = measure()
    machine = (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{began:%Y-%m-%d}"
    )
    report = "\n".join(
        [
            "# Performance",
            "",
            f"Measured by `make bench` on: {machine}. Service, model, MCP server and load share the cores.",
            "",
            f"A run makes {TOOL_CALLS} tool calls (streamed model answers, MCP over streamable HTTP) and is created and",
            "awaited over HTTP with everything on: ledger, events, audit, SQLite. The floor does the same model and MCP",
            "calls over raw sockets with one SQLite commit per run, in the same measurement.",
            "",
            *lines,
            "",
        ]
    )
    sys.stdout.write(report)
    if "--write" in sys.argv[1:]:
        (ROOT / "docs" / "performance.md").write_text(report, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
