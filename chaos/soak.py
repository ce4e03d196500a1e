"""Many runs on one service: its memory and its log level off, and its WAL is cut once it rests."""

import argparse
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.processes import resident_bytes, until
from tests.e2e.service import Service, a_turn, serving

RUNS, AT_ONCE = 30_000, 16
MAX_GROWTH = 24 * 1024 * 1024
"""How much more memory the service may hold at the end than after a sixth of the runs: what it
caches is full by then."""
MAX_LINES = 200
"""Lines of the log at default settings, of a server that never answers among them."""
_REST_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    runs: int
    memory: int
    wal: int
    lines: int


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--soak-runs", type=int, default=RUNS, help="runs in all (default %(default)s)")
    parser.add_argument("--soak-at-once", type=int, default=AT_ONCE, help="runs at a time (default %(default)s)")


def run(arguments: argparse.Namespace) -> list[str]:
    """Samples after a thirtieth of the runs and after each sixth; what did not hold."""
    with tempfile.TemporaryDirectory(prefix="dragoman-soak-") as folder, serving(Path(folder) / "home") as service:
        prepare(service)
        return soaked(service, runs=arguments.soak_runs, at_once=arguments.soak_at_once)


def soaked(service: Service, *, runs: int, at_once: int) -> list[str]:
    """Samples are printed as they come."""
    began = time.monotonic()
    samples = list(_samples(service, runs=runs, at_once=at_once))
    print(f"{runs} runs in {time.monotonic() - began:.0f} s, {at_once} at a time", flush=True)
    complaints = []
    full = samples[1]
    growth = samples[-1].memory - full.memory
    if growth > MAX_GROWTH:
        complaints.append(f"memory grew by {growth // 1024} KiB after {full.runs} runs")
    if samples[-1].lines > MAX_LINES:
        complaints.append(f"the log has {samples[-1].lines} lines")
    log = service.log.read_text(errors="replace")
    complaints += [f"the log has {word!r}" for word in ("Traceback", "never retrieved") if word in log]
    until(lambda: not _wal(service), patience_s=_REST_S, what="the WAL to be cut")
    return [f"soak: {complaint}" for complaint in complaints]


def prepare(service: Service) -> None:
    """An agent whose model calls nothing, with a server that is not there."""
    service.server("gone", "/nowhere/gone")
    service.agent("says", service.script("says", a_turn("Here.")), mcp_servers=["gone"])


def _samples(service: Service, *, runs: int, at_once: int) -> Iterator[Sample]:
    share = max(runs // 6, 1)
    begun = 0
    with ThreadPoolExecutor(at_once) as threads, httpx.Client(headers=service.headers, timeout=120) as client:
        for ended in (max(share // 5, 1), *(part * share for part in range(1, 7))):
            list(threads.map(lambda _: _one(client, service.url), range(ended - begun)))
            begun = ended
            sample = Sample(
                runs=ended,
                memory=resident_bytes(service.process.pid),
                wal=_wal(service),
                lines=service.log.read_bytes().count(b"\n"),
            )
            print(
                f"after {sample.runs} runs: {sample.memory // 1024} KiB in memory, WAL {sample.wal // 1024} KiB,"
                f" {sample.lines} lines in the log",
                flush=True,
            )
            yield sample


def _one(client: httpx.Client, url: str) -> None:
    answer = client.post(f"{url}/v1/runs/wait", json={"agent": "says", "input": "Go."})
    answer.raise_for_status()
    status = answer.json()["run"]["status"]
    if status != "completed":
        raise RuntimeError(f"a run ended {status}: {answer.text[:500]}")


def _wal(service: Service) -> int:
    return sum(path.stat().st_size for path in service.home.glob("*.db-wal"))
