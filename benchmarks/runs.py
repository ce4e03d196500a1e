"""Runs over HTTP, created and awaited, everything on: beside the same calls over raw sockets, in
the same measurement.

`python -m benchmarks --only runs`, or `runs-on-postgresql`.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.figures import Budget, held
from benchmarks.gateway import Figures, Target, relay_target, relayed
from benchmarks.postgres import migrated_database
from benchmarks.processes import ROOT, counterpart
from benchmarks.raw_http import RawClient
from benchmarks.service import Service, running_service
from benchmarks.upstreams import UPSTREAMS

TOOL_CALLS, MORE_CALLS = 3, 43
RUNS, LONG_RUNS, WARM_UP = 200, 32, 60
ROUNDS = 3
CONCURRENCIES = (1, 16, 64)
SLOPE_CONCURRENCY = 16
RUNS_PER_S, POSTGRES_RUNS_PER_S, ITERATION_CPU_MS = 180, 150, 1.8
OF_RELAY, POSTGRES_OF_RELAY = 0.019, 0.0156
"""Those runs per second of the 9,600 calls that a bare relay makes where they were set (ADR
0077)."""
RELAYED_CALLS = 1_500
ABOUT = (
    f"A run makes {TOOL_CALLS} tool calls and is created and awaited over HTTP with everything on: policy, ledger, events, audit, "
    "SQLite. The floor makes the same model and MCP calls over raw sockets with one SQLite commit per run. An iteration is a model "
    f"call and a tool call. CPU is that of the service's process; a run's, divided by {TOOL_CALLS}, counts creating, waiting, "
    "claiming and the closing model call as part of its iterations. Everything is measured in "
    f"{ROUNDS} rounds, one case after the other and the floor in each, and summed: a machine whose speed changes changes it for all."
)

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """`runs` runs: wall time, CPU of the measured process, latencies of single runs, bytes of the
    floor's database for each."""

    runs: int
    wall_s: float
    cpu_s: float
    latencies_s: tuple[float, ...] = ()
    stored_bytes: int = 0

    @classmethod
    def summed(cls, rounds: Sequence["Measured"]) -> "Measured":
        """The rounds as one measurement."""
        return cls(
            runs=sum(part.runs for part in rounds),
            wall_s=sum(part.wall_s for part in rounds),
            cpu_s=sum(part.cpu_s for part in rounds),
            latencies_s=tuple(latency for part in rounds for latency in part.latencies_s),
            stored_bytes=max(part.stored_bytes for part in rounds),
        )

    @property
    def runs_per_s(self) -> float:
        """Throughput."""
        return self.runs / self.wall_s

    @property
    def cpu_ms_per_run(self) -> float:
        """CPU of one run, from its request to its answer."""
        return self.cpu_s * 1000 / self.runs

    @property
    def cpu_ms_per_iteration(self) -> float:
        """CPU of a run of `TOOL_CALLS` calls by their number: the closing model call counts as part
        of the iterations."""
        return self.cpu_ms_per_run / TOOL_CALLS

    def percentile_ms(self, percent: int) -> float:
        """A latency."""
        return statistics.quantiles(self.latencies_s, n=100)[percent - 1] * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How the model answers, and over what the tool is called."""

    title: str
    answers: str
    upstream: str

    def agent(self, service: Service, tool_calls: int) -> str:
        """An agent whose runs make so many calls: its name."""
        name = f"{self.answers}-{self.upstream}-{tool_calls}"
        limits = {"max_turns": tool_calls + 10, "max_tool_calls": tool_calls + 10}
        model = f"openai:{self.answers}-{tool_calls}-{self.upstream}"
        service.post("/agents", {"name": name, "model": model, "mcp_servers": [self.upstream], "limits": limits})
        return name


STREAMED = Kind(title="HTTP, streamed", answers="calls", upstream="modern")
KINDS = (
    STREAMED,
    Kind(title="HTTP, whole answers", answers="whole", upstream="modern"),
    Kind(title="stdio, streamed", answers="calls", upstream="stdio"),
    Kind(title="stdio, whole answers", answers="whole", upstream="stdio"),
)


def floor(
    model_port: int, mcp_port: int, concurrency: int, *, runs: int = RUNS, tool_calls: int = TOOL_CALLS
) -> Measured:
    """The same work with raw sockets and one commit per run."""
    arguments = [model_port, mcp_port, runs, concurrency, tool_calls]
    printed = subprocess.run(
        [sys.executable, "-m", "benchmarks.floor", *map(str, arguments)],
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
    ).stdout
    figures = json.loads(printed)
    return Measured(runs=runs, wall_s=figures["wall_s"], cpu_s=figures["cpu_s"], stored_bytes=figures["stored_bytes"])


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A service with both servers, and the ports of the model and of the server over HTTP."""

    service: Service
    model_port: int
    mcp_port: int
    relay: Target


@contextmanager
def prepared(*, postgres: bool) -> Iterator[Bench]:
    """On a new database."""
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", str(TOOL_CALLS)))
        mcp_port = stack.enter_context(counterpart("mcp-modern"))
        extra = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1"}
        if postgres:
            extra["DRAGOMAN_DATABASE_URL"] = stack.enter_context(migrated_database())
            extra["DRAGOMAN_SECRET_KEY"] = "the key of a benchmark"
        relay = stack.enter_context(relayed(mcp_port))
        service = stack.enter_context(running_service(extra))
        yield Bench(service=service, model_port=model_port, mcp_port=mcp_port, relay=relay_target(relay))


def report(*, postgres: bool = False) -> list[str]:
    """Throughput and latency, CPU of a run and of a further iteration, memory; and what of it has a
    budget."""
    with prepared(postgres=postgres) as bench:
        service = bench.service
        idle_mb = service.resident_mb()
        for upstream in UPSTREAMS:
            if upstream.slug in ("modern", "stdio"):
                service.post("/mcp-servers", upstream.config(bench.mcp_port if upstream.slug == "modern" else None))
        kinds = (STREAMED,) if postgres else KINDS
        agents = {kind: Agents.of(kind, service) for kind in kinds}
        for agent in agents.values():
            asyncio.run(drive(service, agent.short, runs=WARM_UP, concurrency=8))
            asyncio.run(drive(service, agent.long, runs=WARM_UP // 4, concurrency=8))
        rounds = [Round.made(bench, agents) for _ in range(ROUNDS)]
        loaded_mb, peak_mb = service.resident_mb(), service.peak_mb()
    ours, floors = _summed([made.ours for made in rounds]), _summed([made.floors for made in rounds])
    slopes = Slopes(
        short={kind: ours[kind, SLOPE_CONCURRENCY] for kind in kinds},
        long=_summed([made.long for made in rounds]),
        floor_short=floors[SLOPE_CONCURRENCY],
        floor_long=Measured.summed([made.floor_long for made in rounds]),
    )
    relayed_per_s = Figures.summed([made.relayed for made in rounds]).answered.per_s
    runs = sum(figures.runs for figures in (*ours.values(), *slopes.long.values())) + len(kinds) * WARM_UP * 5 // 4
    return [
        *_throughput(ours, floors),
        "",
        *slopes.lines(),
        "",
        f"Resident memory {idle_mb:.0f} MB idle, {peak_mb:.0f} MB at most under this load, {loaded_mb:.0f} MB after it ({runs} runs).",
        f"A bare relay makes {relayed_per_s:,.0f} calls/s at concurrency 16 between the rounds.",
        *held(*_budgets(ours, slopes, relayed_per_s, postgres=postgres)),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """The names of the agents whose runs are of a kind: few calls, and many."""

    short: str
    long: str

    @classmethod
    def of(cls, kind: Kind, service: Service) -> "Agents":
        """Make them."""
        return cls(short=kind.agent(service, TOOL_CALLS), long=kind.agent(service, MORE_CALLS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Each case once: short runs by kind and concurrency, long ones by kind, and the floor beside
    both."""

    ours: Mapping[tuple[Kind, int], Measured]
    long: Mapping[Kind, Measured]
    floors: Mapping[int, Measured]
    floor_long: Measured
    relayed: Figures

    @classmethod
    def made(cls, bench: Bench, agents: Mapping[Kind, Agents]) -> "Round":
        """Measure them one after the other."""
        at_16 = SLOPE_CONCURRENCY
        cases = [(STREAMED, concurrency) for concurrency in CONCURRENCIES]
        cases += [(kind, at_16) for kind in agents if kind is not STREAMED]
        return cls(
            ours={case: _driven(bench.service, agents[case[0]].short, case[1]) for case in cases},
            long={
                kind: asyncio.run(drive(bench.service, names.long, runs=LONG_RUNS, concurrency=at_16))
                for kind, names in agents.items()
            },
            floors={concurrency: floor(bench.model_port, bench.mcp_port, concurrency) for concurrency in CONCURRENCIES},
            floor_long=floor(bench.model_port, bench.mcp_port, at_16, runs=LONG_RUNS, tool_calls=MORE_CALLS),
            relayed=bench.relay.measured(RELAYED_CALLS, at_16),
        )


def _driven(service: Service, agent: str, concurrency: int) -> Measured:
    return asyncio.run(drive(service, agent, runs=RUNS // 2 if concurrency == 1 else RUNS, concurrency=concurrency))


def _summed(rounds: Sequence[Mapping[K, Measured]]) -> dict[K, Measured]:
    return {case: Measured.summed([made[case] for made in rounds]) for case in rounds[0]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes:
    """What short and long runs took at the same concurrency, ours by kind and the floor's."""

    short: Mapping[Kind, Measured]
    long: Mapping[Kind, Measured]
    floor_short: Measured
    floor_long: Measured

    def of(self, kind: Kind) -> float:
        """CPU milliseconds of one iteration more."""
        return _slope(self.short[kind], self.long[kind])

    def lines(self) -> list[str]:
        """The table."""
        base = _slope(self.floor_short, self.floor_long)
        rows = [
            f"| {kind.title} | {self.short[kind].cpu_ms_per_run:.2f} | {self.long[kind].cpu_ms_per_run:.1f} | {self.of(kind):.2f} "
            f"| {self.floor_short.cpu_ms_per_run:.2f} | {base:.2f} | {self.of(kind) / base:.1f} |"
            for kind in self.short
        ]
        return [
            f"A further iteration is what a run of {MORE_CALLS} calls takes more than one of {TOOL_CALLS}, divided by the "
            f"{MORE_CALLS - TOOL_CALLS} iterations it has more, both at concurrency {SLOPE_CONCURRENCY}: what is done once per run "
            "(creating, claiming, waiting, the closing model call) is not in it, and is the rest of the CPU of a run.",
            "",
            f"| MCP, model | CPU ms per run of {TOOL_CALLS} calls | per run of {MORE_CALLS} calls | CPU ms per further iteration "
            f"| floor: CPU ms per run of {TOOL_CALLS} calls | floor: CPU ms per further iteration | ratio of iterations |",
            "|---|---|---|---|---|---|---|",
            *rows,
        ]


def _slope(short: Measured, long: Measured) -> float:
    return (long.cpu_ms_per_run - short.cpu_ms_per_run) / (MORE_CALLS - TOOL_CALLS)


def _throughput(ours: Mapping[tuple[Kind, int], Measured], floors: Mapping[int, Measured]) -> list[str]:
    rows = [
        f"| MCP, model | concurrency | runs/s | p50 ms | p99 ms | CPU ms per run | by {TOOL_CALLS}: CPU ms per iteration "
        "| floor: runs/s | floor: CPU ms per iteration | CPU ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (kind, concurrency), figures in ours.items():
        base = floors[concurrency]
        rows.append(
            f"| {kind.title} | {concurrency} | {figures.runs_per_s:.0f} | {figures.percentile_ms(50):.1f} "
            f"| {figures.percentile_ms(99):.1f} | {figures.cpu_ms_per_run:.2f} | {figures.cpu_ms_per_iteration:.2f} "
            f"| {base.runs_per_s:.0f} | {base.cpu_ms_per_iteration:.2f} | {figures.cpu_ms_per_run / base.cpu_ms_per_run:.1f} |"
        )
    return rows


def _budgets(
    ours: Mapping[tuple[Kind, int], Measured], slopes: Slopes, relayed_per_s: float, *, postgres: bool
) -> Iterator[tuple[Budget, float]]:
    """Both ways of counting an iteration are held against its budget."""
    where, least = ("PostgreSQL", POSTGRES_RUNS_PER_S) if postgres else ("SQLite", RUNS_PER_S)
    throughput = Budget(what=f"runs on {where}, concurrency 16, over HTTP", limit=least, unit="runs/s", at_least=True)
    runs_per_s = ours[STREAMED, 16].runs_per_s
    yield throughput, runs_per_s
    share = Budget(
        what=f"runs on {where} per call of a bare relay, concurrency 16",
        limit=POSTGRES_OF_RELAY if postgres else OF_RELAY,
        unit="of 1",
        at_least=True,
    )
    yield share, runs_per_s / relayed_per_s
    if postgres:
        return
    for kind, figures in slopes.short.items():
        further = Budget(what=f"CPU of a further iteration, {kind.title}", limit=ITERATION_CPU_MS, unit="ms")
        yield further, slopes.of(kind)
        by_calls = Budget(
            what=f"CPU of a run of {TOOL_CALLS} calls by {TOOL_CALLS}, {kind.title}", limit=ITERATION_CPU_MS, unit="ms"
        )
        yield by_calls, figures.cpu_ms_per_iteration
