"""Services and workers of one version, replaced one after the other by those of the next, on one
PostgreSQL database under load.

The next version is this one with a revision more; with `--upgrade-from`, a commit of the history is
replaced by this version."""

import argparse
import asyncio
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from chaos.outage_runs import Clients, Outcome, inspected, prepare
from chaos.postgres_outages import noting_server
from tests.databases import PostgresDatabases
from tests.e2e.postgres import Cluster, Worker, cluster
from tests.e2e.service import DRAGOMAN, ROOT, STOP_S, Service, environment
from tests.e2e.versions import next_version, version_of
from tests.integration.mcp.parts import free_port
from tests.stoppable_postgres import stoppable_postgres

BATCH, AT_ONCE = 24, 8
"""Runs that are started together, again and again until all processes are of the next version; and
how many clients there are."""
_DRAIN_S = 120


@dataclass(slots=True, kw_only=True)
class Fleet:
    """Two services on ports that stay, and two workers. `replacing` has the sources of the version
    that replaces them."""

    processes: Cluster
    logs: Path
    replacing: Path
    services: list[Service]
    workers: list[Worker]
    complaints: list[str] = field(default_factory=list)

    def upgrade(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """`dragoman db upgrade` of the version that replaces."""
        settings = {**self.processes.settings, "PYTHONPATH": str(self.replacing)}
        return subprocess.run(
            [*DRAGOMAN, "db", "upgrade", *options],
            env=environment(self.processes.folder / "upgrade", **settings),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=STOP_S * 3,
            check=False,
        )


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument(
        "--upgrade-from",
        metavar="COMMIT",
        help="rolling-upgrade: begin with this commit, of before revision 0067 (default: this version and a next one)",
    )


def run(arguments: argparse.Namespace) -> list[str]:
    """One upgrade; what did not hold."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-upgrade-")))
        postgres = stack.enter_context(stoppable_postgres())
        databases = stack.enter_context(PostgresDatabases(postgres.url).prepared())
        url = stack.enter_context(databases.empty())
        if arguments.upgrade_from is None:
            fleet = stack.enter_context(fleet_of(url, folder, replacing=next_version(folder)))
        else:
            before = version_of(arguments.upgrade_from, folder)
            fleet = stack.enter_context(fleet_of(url, folder, replacing=ROOT / "src", before=before))
        return asyncio.run(under_load(fleet, declares=arguments.upgrade_from is None))


@contextmanager
def fleet_of(url: str, folder: Path, *, replacing: Path, before: Path = ROOT / "src") -> Iterator[Fleet]:
    """All of the version `before`, running."""
    with cluster(url, folder) as processes, ExitStack() as stack:
        stack.enter_context(processes.running)
        processes.extra["PYTHONPATH"] = str(before)
        services = [processes.serve(f"api-{number}", "--no-worker", "--port", str(free_port())) for number in range(2)]
        logs = folder / "logs"
        logs.mkdir()
        prepare(services[0], logs, stack.enter_context(noting_server(logs / "remote.log")))
        workers = [processes.work(f"worker-{number}") for number in range(2)]
        yield Fleet(processes=processes, logs=logs, replacing=replacing, services=services, workers=workers)


async def under_load(fleet: Fleet, *, declares: bool = True, batch: int = BATCH, at_once: int = AT_ONCE) -> list[str]:
    """Replace all processes while clients start and follow runs; prints figures and gives what did
    not hold. A version before revision 0067 `declares` nothing: it is not ready after the upgrade,
    and cannot be drained."""
    clients, began = Clients(fleet.services, restarted=True), time.monotonic()
    replacing = asyncio.create_task(asyncio.to_thread(_replace, fleet, declares=declares))
    batches: dict[str, list[str]] = {}
    while not replacing.done():
        name = f"batch {len(batches)}"
        batches[name] = await clients.run(name, batch, at_once=at_once)
    await replacing
    after = f"batch {len(batches)}"
    batches[after] = await clients.run(after, batch, at_once=at_once)
    outcomes = [await inspected(fleet.services, runs, name, fleet.logs) for name, runs in batches.items()]
    return [
        *fleet.complaints,
        *clients.seen.complaints,
        *_seen(outcomes, clients, time.monotonic() - began, declares=declares),
    ]


def _seen(outcomes: list[Outcome], clients: Clients, seconds: float, *, declares: bool) -> Iterator[str]:
    attempts = sum((outcome.attempts for outcome in outcomes), start=type(outcomes[0].attempts)())
    print(
        f"{attempts.total()} runs in {seconds:.0f} s while all processes were replaced;"
        f" {', '.join(f'{count} at attempt {attempt}' for attempt, count in sorted(attempts.items()))};"
        f" {sum(outcome.unknown for outcome in outcomes)} calls of unknown outcome; {clients.seen.cut} connections lost and"
        f" {clients.seen.refusals} answers 503 repeated; longest run {clients.seen.longest_s:.1f} s",
        flush=True,
    )
    for outcome in outcomes:
        yield from outcome.complaints
        if declares and outcome.unknown:
            yield f"{outcome.unknown} calls have an unknown outcome although no process was killed"
    if declares and set(attempts) != {1}:
        yield f"workers have not finished what they began: attempts {dict(attempts)}"


def _replace(fleet: Fleet, *, declares: bool) -> None:
    """Upgrade the database, then replace the services, then the workers."""
    for arguments in (("--check",), ()):
        done = fleet.upgrade(*arguments)
        if done.returncode != 0 or (declares and arguments and "continue to work" not in done.stdout):
            fleet.complaints.append(f"db upgrade {arguments}: {done.returncode} {done.stdout} {done.stderr[-2000:]}")
    if declares:
        _look_at_readiness(fleet)
        # An older version may be started still: a machine restarts, or a deployment is taken back.
        fleet.workers.append(fleet.processes.work("worker-late"))
    fleet.processes.extra["PYTHONPATH"] = str(fleet.replacing)
    for number, service in enumerate(fleet.services):
        if (status := service.stop()) != 0:
            fleet.complaints.append(f"a service ended with {status}")
        port = httpx.URL(service.url).port
        fleet.services[number] = fleet.processes.serve(f"api-{number}", "--no-worker", "--port", str(port))
    for number, worker in enumerate(fleet.workers):
        fleet.processes.work(f"worker-next-{number}")
        if declares:
            _drain(fleet, worker)
        elif (status := worker.stop()) != 0:
            fleet.complaints.append(f"{worker.name} ended with {status}")
    _look_at_readiness(fleet)


def _look_at_readiness(fleet: Fleet) -> None:
    for service in fleet.services:
        answer = httpx.get(f"{service.url}/health/ready", timeout=60, trust_env=False)
        if answer.status_code != 200:
            fleet.complaints.append(f"a service is not ready after the upgrade: {answer.text}")


def _drain(fleet: Fleet, worker: Worker) -> None:
    """By the command of the version that replaces."""
    command = [*DRAGOMAN, "drain", str(worker.process.pid), "--within", str(_DRAIN_S)]
    settings = {"PYTHONPATH": str(fleet.replacing)}
    done = subprocess.run(
        command,
        env=environment(fleet.processes.folder / "upgrade", **settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_DRAIN_S * 2,
        check=False,
    )
    if "finished its runs" not in done.stdout:
        fleet.complaints.append(f"{worker.name} was not drained: {done.stdout} {done.stderr[-2000:]}")
    worker.process.wait(timeout=STOP_S)
