"""`kill -9` of the service at any moment, faster than a turn, while runs are in hand; and what
became of them."""

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.service import Json, Service, a_turn, serving

TURNS = 4
TURN_MS = 2_000
_TOOL = "mcp__watched__look"
"""Of a server that is not trusted: a call that was perhaps sent is not repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """`kills` of the service, each while `runs` runs have turns of `turn_ms`, between 0.4 and 1.1
    of a turn after it is ready."""

    kills: int
    runs: int
    turn_ms: int = TURN_MS


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--kills", type=int, default=25, help="kills: how often (default %(default)s)")
    parser.add_argument("--killed-runs", type=int, default=12, help="kills: runs in hand (default %(default)s)")


def run(arguments: argparse.Namespace) -> list[str]:
    """Prints figures; what did not hold."""
    with tempfile.TemporaryDirectory(prefix="dragoman-kills-") as folder:
        return list(drilled(Path(folder), Drill(kills=arguments.kills, runs=arguments.killed_runs)))


def drilled(folder: Path, drill: Drill) -> Iterator[str]:
    """What did not hold."""
    began = time.monotonic()
    home = folder / "home"
    with serving(home) as service:
        run_ids = _begin(service, drill)
        _kill(service, drill)
    for _ in range(drill.kills - 1):
        with serving(home) as service:
            _kill(service, drill)
    with serving(home) as service:
        runs = [service.wait(run_id)["run"] for run_id in run_ids]
        took = time.monotonic() - began
        print(
            f"{drill.kills} kills: {sum(run['status'] == 'completed' for run in runs)} of {len(runs)} runs completed,"
            f" the most attempts {max(run['attempt'] for run in runs)}, {took:.0f} s",
            flush=True,
        )
        yield from _outcomes(runs)
        for run_id in run_ids:
            yield from _events(run_id, service.events(run_id))
        if not service.call("GET", "/audit-events/verify")["ok"]:
            yield "the audit chain is broken"
        yield from _calls((home / "watched.log").read_text(encoding="utf-8"), most=drill.runs)
        yield from _errors(service.log.read_text(encoding="utf-8", errors="replace"))


def _begin(service: Service, drill: Drill) -> list[str]:
    """Runs that note a text in each turn but the last."""
    service.watched_server("watched")
    turns = (a_turn("I note it.", (_TOOL, {"text": str(number)})) for number in range(TURNS - 1))
    model = service.script("slow", *turns, a_turn("Done."), delay_ms=drill.turn_ms)
    service.agent("slow", model, mcp_servers=["watched"])
    return [service.start_run("slow") for _ in range(drill.runs)]


def _kill(service: Service, drill: Drill) -> None:
    time.sleep(random.uniform(0.4, 1.1) * drill.turn_ms / 1000)  # any moment will do
    service.process.kill()
    service.process.wait()


def _outcomes(runs: Sequence[Json]) -> Iterator[str]:
    for one in runs:
        if (one["status"], one["output"]) != ("completed", "Done."):
            yield f"{one['id']} ended {one['status']} with {one['output']!r}, {one['error']}"


def _events(run_id: str, events: Sequence[Json]) -> Iterator[str]:
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        yield f"the events of {run_id} have gaps or doubles"
    if [event["type"] for event in events].count("run.completed") != 1:
        yield f"{run_id} has not one end among its events"


def _calls(log: str, *, most: int) -> Iterator[str]:
    """The faults: calls that must not be repeated and were sent more than once in a run."""
    called = Counter(line for line in log.splitlines() if line.startswith("called "))
    yield from (f"{line!r} {count} times" for line, count in called.items() if count > most)


def _errors(log: str) -> Iterator[str]:
    if count := log.count("Traceback"):
        yield f"{count} tracebacks are in the log, the first: {log[log.index('Traceback') :][:2_000]}"
