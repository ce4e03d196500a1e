"""Calls through the gateway, everything on: policy, ledger, audit, limits; beside a direct call and
a bare relay in the same run.

`python -m benchmarks.gateway` prints it; `make bench` too. `--long` makes 200,000 calls where
memory is looked at, `--postgres` measures on PostgreSQL, `--calls N` and `--only UPSTREAM` make it
shorter, `--only-log` compares the log at default settings with none.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from urllib.request import Request, urlopen

from benchmarks.calls import Answered, answered, post_request, tool_call
from benchmarks.figures import Budget, held
from benchmarks.postgres import migrated_database
from benchmarks.processes import ROOT, counterpart
from benchmarks.service import Service, running_service
from benchmarks.upstreams import LEGACY, MODERN, UPSTREAMS, Upstream

CONCURRENCIES = (1, 16, 64)
CALLS, WARM_UP = 9_000, 2_000
ROUNDS = 3
MEMORY_CALLS, LONG_CALLS = 40_000, 200_000
IDLE_SESSIONS = 2_000
LOG_CALLS, LOG_ROUNDS, LOG_CONCURRENCY = 2_000, 8, 16
PER_S, POSTGRES_PER_S, ADDED_MS, FLAT_PERCENT, LOG_RATIO = 2_300, 2_000, 1.0, 10, 0.85
CALL_MS, FLUSHES = 2.0, 100
OF_RELAY, POSTGRES_OF_RELAY = 0.24, 0.21
"""Those calls per second of the 9,600 that a bare relay makes where they were set (ADR 0077)."""
_THROUGHPUT = Budget(what="calls through the gateway, concurrency 16", limit=PER_S, unit="calls/s", at_least=True)
_ON_POSTGRES = Budget(
    what="calls through the gateway on PostgreSQL, concurrency 16", limit=POSTGRES_PER_S, unit="calls/s", at_least=True
)
_SHARE = Budget(what="calls through the gateway, of a bare relay's", limit=OF_RELAY, unit="of 1", at_least=True)
_SHARE_ON_POSTGRES = Budget(
    what="calls through the gateway on PostgreSQL, of a bare relay's",
    limit=POSTGRES_OF_RELAY,
    unit="of 1",
    at_least=True,
)
_ADDED = Budget(what="p50 that the gateway adds at concurrency 1", limit=ADDED_MS, unit="ms")
_LOGGING = Budget(
    what="calls/s with the log at default settings, of those with the log off",
    limit=LOG_RATIO,
    unit="of 1",
    at_least=True,
)
_CALL_ON_POSTGRES = Budget(what="p50 of a call on PostgreSQL at concurrency 1", limit=CALL_MS, unit="ms")
_CALL_BESIDE_FLUSHES = Budget(
    what="p50 of a call on PostgreSQL beside the two flushes of the disk that it waits for", limit=CALL_MS, unit="ms"
)
_RELAYED = "bare relay"

_PAGE = 8_192

# Counted for every call, and never reached.
LIMITS = {"DRAGOMAN_KEY_RATE_LIMIT": "1000000/1", "DRAGOMAN_MCP_RATE_LIMIT": "1000000/1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Calls of one kind at one concurrency; CPU is that of the process in the middle, if there is
    one."""

    answered: Answered
    cpu_s: float | None = None

    @classmethod
    def summed(cls, rounds: Sequence["Figures"]) -> "Figures":
        """The rounds as one measurement."""
        done = Answered.summed([part.answered for part in rounds])
        cpu_s = [part.cpu_s for part in rounds if part.cpu_s is not None]
        return cls(answered=done, cpu_s=sum(cpu_s) if cpu_s else None)

    @property
    def cpu_ms(self) -> float | None:
        """CPU of one call."""
        return None if self.cpu_s is None else self.cpu_s * 1000 / self.answered.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is called: a port, the complete request, and the process whose CPU counts."""

    port: int
    request: bytes
    process: Service | None = None

    def measured(self, calls: int, concurrency: int) -> Figures:
        """Call it."""
        before = self.process.cpu_s() if self.process is not None else 0.0
        done = answered(self.port, self.request, calls=calls, concurrency=concurrency)
        return Figures(answered=done, cpu_s=None if self.process is None else self.process.cpu_s() - before)


@contextmanager
def relayed(port: int) -> Iterator[Service]:
    """A bare relay in front of an upstream."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.relay", f"http://127.0.0.1:{port}/mcp"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        yield Service(pid=process.pid, home=ROOT, url=url, key="", ready_s=0.0)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def prepared(service: Service, ports: dict[str, int | None]) -> None:
    """A server and an agent for each upstream; policy, limits of the organization and of the agent
    are set."""
    for upstream in UPSTREAMS:
        if upstream.slug not in ports:
            continue
        service.post("/mcp-servers", upstream.config(ports[upstream.slug]))
        tool = f"mcp__{upstream.slug}__echo"
        service.post(
            "/agents",
            {
                "name": upstream.slug,
                "model": "openai:bench",
                "mcp_servers": [upstream.slug],
                "tool_allowlist": ["mcp__*"],
                "tool_policies": {tool: {"decision": "allow", "allowed_params": ["text"]}},
            },
        )


def relay_target(relay: Service) -> Target:
    """Calls through the bare relay."""
    return Target(port=relay.port, request=_plain(relay.port), process=relay)


def gateway_target(service: Service, upstream: Upstream, version: str) -> Target:
    """A session over the upstream's tools, called in that version of the protocol."""
    opened = service.post("/gateway-sessions", {"agent_id": upstream.slug})
    body, headers = tool_call(f"mcp__{upstream.slug}__echo", version)
    headers["Authorization"] = f"Bearer {opened['token']}"
    return Target(port=service.port, request=post_request(service.port, "/mcp", body, headers), process=service)


def table(service: Service, relay: Service, ports: dict[str, int | None], calls: int, *, postgres: bool) -> list[str]:
    """The rows of every upstream and generation of callers, with direct and relayed calls first;
    then what has a budget: calls per second at concurrency 16, those of the relay's, and
    milliseconds added to a direct call at concurrency 1."""
    targets = [("direct", Target(port=_http(ports), request=_plain(_http(ports))))]
    targets.append((_RELAYED, relay_target(relay)))
    for upstream in UPSTREAMS:
        if upstream.slug in ports:
            for version in (MODERN, LEGACY):
                title = f"gateway, client {version}, {upstream.title}"
                targets.append((title, gateway_target(service, upstream, version)))
    for _, target in targets:
        answered(target.port, target.request, calls=min(calls, WARM_UP), concurrency=8)
    # In rounds, one case after the other: a machine whose speed changes changes it for all.
    rounds, flushes_s = [], []
    for _ in range(ROUNDS):
        rounds.append(
            {
                (title, concurrency): target.measured(-(-calls // ROUNDS), concurrency)
                for title, target in targets
                for concurrency in CONCURRENCIES
            }
        )
        flushes_s += flushed_s(FLUSHES) if postgres else []
    measured = {case: Figures.summed([made[case] for made in rounds]) for case in rounds[0]}
    rows = [
        "| calls | concurrency | calls/s | p50 ms | p99 ms | CPU ms per call | calls/s: of the relay's | CPU: of the relay's |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        _row(title, concurrency, figures, None if title == "direct" else measured[_RELAYED, concurrency])
        for (title, concurrency), figures in measured.items()
    ]
    first, direct_ms = targets[2][0], measured["direct", 1].answered.percentile_ms(50)
    added_ms, relayed_ms = (measured[title, 1].answered.percentile_ms(50) - direct_ms for title in (first, _RELAYED))
    rows += [
        "",
        f"At concurrency 1 the gateway adds {added_ms:.2f} ms to a direct call (median; {first}), the relay {relayed_ms:.2f} ms.",
    ]
    per_s, relayed_per_s = (measured[title, 16].answered.per_s for title in (first, _RELAYED))
    if postgres:
        call_ms, flush_ms = measured[first, 1].answered.percentile_ms(50), statistics.median(flushes_s) * 1000
        return [
            *rows,
            f"A call is committed twice, before it is sent and before it is answered: at concurrency 1 it takes {call_ms:.2f} ms (median). A"
            f" flush of 8 KB to this disk took {flush_ms:.2f} ms between the rounds (fdatasync, median of {len(flushes_s)}).",
            *held(
                (_ON_POSTGRES, per_s),
                (_SHARE_ON_POSTGRES, per_s / relayed_per_s),
                (_CALL_ON_POSTGRES, call_ms),
                (_CALL_BESIDE_FLUSHES, call_ms - 2 * flush_ms),
            ),
        ]
    return [*rows, *held((_THROUGHPUT, per_s), (_SHARE, per_s / relayed_per_s), (_ADDED, added_ms))]


def flushed_s(count: int) -> list[float]:
    """Seconds that each flush of a page to the disk takes, over pages that are there, as those of
    PostgreSQL's log."""
    pages = 128
    found = []
    with tempfile.TemporaryFile() as file:
        file.write(bytes(pages * _PAGE))
        os.fdatasync(file)
        for number in range(count):
            os.pwrite(file.fileno(), b"\1" * _PAGE, number % pages * _PAGE)
            began = time.perf_counter()
            os.fdatasync(file)
            found.append(time.perf_counter() - began)
    return found


def logging_cost(ports: dict[str, int | None], extra: dict[str, str]) -> list[str]:
    """Calls to two services that differ in their log alone, default and off, turn by turn."""
    upstream = next(one for one in UPSTREAMS if one.slug in ports)
    with ExitStack() as stack:
        targets = {}
        for title, level in (("default", {}), ("off", {"DRAGOMAN_LOG_LEVEL": "error"})):
            service = stack.enter_context(running_service({**extra, **level}))
            prepared(service, {upstream.slug: ports[upstream.slug]})
            targets[title] = gateway_target(service, upstream, upstream.version)
        for target in targets.values():
            target.measured(WARM_UP, LOG_CONCURRENCY)
        rounds = []
        for number in range(LOG_ROUNDS):
            order = list(targets) if number % 2 == 0 else list(reversed(targets))  # neither is always the first
            rounds.append({title: targets[title].measured(LOG_CALLS, LOG_CONCURRENCY) for title in order})
    whole = {title: Figures.summed([one[title] for one in rounds]) for title in targets}
    rows = [
        f"| round, concurrency {LOG_CONCURRENCY} | log default: calls/s | log off: calls/s | ratio | log default: CPU ms per call "
        "| log off: CPU ms per call |",
        "|---|---|---|---|---|---|",
        *(_log_row(str(number), one["default"], one["off"]) for number, one in enumerate(rounds, start=1)),
        _log_row("all", whole["default"], whole["off"]),
    ]
    ratio = whole["default"].answered.per_s / whole["off"].answered.per_s
    return [*rows, *held((_LOGGING, ratio))]


def _log_row(title: str, default: Figures, off: Figures) -> str:
    ratio = default.answered.per_s / off.answered.per_s
    cpu = f"{default.cpu_ms or 0:.3f} | {off.cpu_ms or 0:.3f}"
    return f"| {title} | {default.answered.per_s:.0f} | {off.answered.per_s:.0f} | {ratio:.2f} | {cpu} |"


def memory(service: Service, ports: dict[str, int | None], calls: int) -> list[str]:
    """Resident memory over many calls, and with many sessions that have called once and are
    idle."""
    upstream = next(one for one in UPSTREAMS if one.slug in ports)
    target = gateway_target(service, upstream, upstream.version)
    answered(target.port, target.request, calls=calls // 4, concurrency=16)
    before = service.resident_mb()
    answered(target.port, target.request, calls=calls, concurrency=16)
    after = service.resident_mb()
    for _ in range(IDLE_SESSIONS):
        one = gateway_target(service, upstream, upstream.version)
        _once(one.request, service.port)
    idle = service.resident_mb()
    calling = Budget(what=f"memory that {calls:,} more calls through the gateway take", limit=FLAT_PERCENT, unit="%")
    idling = Budget(what=f"memory that {IDLE_SESSIONS:,} idle sessions take", limit=FLAT_PERCENT, unit="%")
    return [
        f"| resident memory, MB | after {calls // 4:,} calls | after {calls:,} more | with {IDLE_SESSIONS:,} sessions that have "
        "called and are idle |",
        "|---|---|---|---|",
        f"| `serve` | {before:.0f} | {after:.0f} | {idle:.0f} |",
        f"| of the first | 1.00 | {after / before:.2f} | {idle / before:.2f} |",
        *held((calling, (after / before - 1) * 100), (idling, (idle / after - 1) * 100)),
    ]


def long_memory() -> list[str]:
    """Memory alone, over very many calls."""
    return report(calls=0, memory_calls=LONG_CALLS, only="modern")


def _once(request: bytes, port: int) -> None:
    head, _, body = request.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    del headers["Host"], headers["Content-Length"]
    with urlopen(Request(f"http://127.0.0.1:{port}/mcp", data=body, headers=headers), timeout=30) as response:
        json.load(response)


def _http(ports: dict[str, int | None]) -> int:
    return next(port for port in ports.values() if port is not None)


def _plain(port: int) -> bytes:
    body, headers = tool_call("echo", MODERN)
    return post_request(port, "/mcp", body, headers)


def _row(title: str, concurrency: int, figures: Figures, relayed: Figures | None) -> str:
    done = figures.answered
    cpu = "" if figures.cpu_ms is None else f"{figures.cpu_ms:.2f}"
    rate = "" if relayed is None else f"{done.per_s / relayed.answered.per_s:.2f}"
    share = (
        "" if relayed is None or not relayed.cpu_ms or not figures.cpu_ms else f"{figures.cpu_ms / relayed.cpu_ms:.2f}"
    )
    return (
        f"| {title} | {concurrency} | {done.per_s:.0f} | {done.percentile_ms(50):.2f} | {done.percentile_ms(99):.2f} "
        f"| {cpu} | {rate} | {share} |"
    )


def report(
    *, calls: int = CALLS, memory_calls: int = MEMORY_CALLS, only: str | None = None, postgres: bool = False
) -> list[str]:
    """Everything measured, as lines of docs/performance.md."""
    with ExitStack() as stack:
        ports: dict[str, int | None] = {}
        for upstream in UPSTREAMS:
            if only in (None, upstream.slug):
                started = None
                if upstream.counterpart is not None:
                    started = stack.enter_context(counterpart(upstream.counterpart))
                ports[upstream.slug] = started
        extra = {"OPENAI_API_KEY": "bench", **LIMITS}
        if postgres:
            extra["DRAGOMAN_DATABASE_URL"] = stack.enter_context(migrated_database())
            extra["DRAGOMAN_SECRET_KEY"] = "the key of a benchmark"
        direct = dict(ports)
        if _no_http(ports):
            direct["plain"] = stack.enter_context(counterpart("mcp"))
        relay = stack.enter_context(relayed(_http(direct)))
        service = stack.enter_context(running_service(extra))
        prepared(service, ports)
        lines: list[str] = []
        if calls:
            lines = table(service, relay, {**ports, **direct}, calls, postgres=postgres)
            lines += [] if postgres else ["", *logging_cost(ports, extra)]
        if memory_calls:
            lines += ["", *memory(service, ports, memory_calls)]
        return lines


def _no_http(ports: dict[str, int | None]) -> bool:
    return all(port is None for port in ports.values())


def main() -> int:
    """Measure as told, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--only", choices=[upstream.slug for upstream in UPSTREAMS])
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--only-log", action="store_true", help="what the log costs, and nothing else")
    given = parser.parse_args()
    if given.only_log:
        with counterpart("mcp-modern") as port:
            sys.stdout.write("\n".join([*logging_cost({"modern": port}, {"OPENAI_API_KEY": "bench", **LIMITS}), ""]))
        return 0
    memory_calls = 0 if given.no_memory else LONG_CALLS if given.long else MEMORY_CALLS
    lines = report(calls=given.calls, memory_calls=memory_calls, only=given.only, postgres=given.postgres)
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
