"""PostgreSQL stopped and started, crashed, its sessions ended, and failed over to its replica,
again and again, under runs of four workers and two services."""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from chaos.outage_runs import Clients, inspected, prepare
from tests.databases import PostgresDatabases
from tests.e2e.postgres import Cluster, cluster
from tests.e2e.service import Service
from tests.replicated_postgres import ReplicatedPostgres, replicated_postgres
from tests.stoppable_postgres import StopMode, StoppablePostgres, stoppable_postgres

RUNS, WORKERS, SERVICES = 500, 4, 2
UP_S, DOWN_S, CUT_EVERY_S = 3.0, 2.0, 1.5
_RECOVERY_S = 60.0
_UNREADY_S = 20.0
"""A service says by then that its database is away: it waits 2 s, and the machine is busy."""
_NOTING_SERVER = Path(__file__).with_name("noting_server.py")

Trouble = Callable[["World", "Troubles"], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Services and workers on one database that can be stopped."""

    postgres: StoppablePostgres | ReplicatedPostgres
    databases: PostgresDatabases
    processes: Cluster
    services: list[Service]
    logs: Path


@dataclass(slots=True, kw_only=True)
class Troubles:
    """What was done to the database: how often, and how long services took to be ready again at the
    longest."""

    count: int = 0
    ready_after_s: float = 0.0
    complaints: list[str] = field(default_factory=list)


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--outage-runs", type=int, default=RUNS, help="runs under each trouble (default %(default)s)")
    parser.add_argument("--outage-workers", type=int, default=WORKERS, help="worker processes (default %(default)s)")


def run(arguments: argparse.Namespace) -> list[str]:
    """Each trouble in turn; what did not hold."""
    complaints = []
    with world(workers=arguments.outage_workers) as made:
        for name, trouble in TROUBLES.items():
            complaints += asyncio.run(under(made, name, trouble, runs=arguments.outage_runs))
    with replicated_world(workers=arguments.outage_workers) as made:
        complaints += asyncio.run(under(made, "failed over", failed_over, runs=arguments.outage_runs))
    return complaints


def world(*, workers: int, services: int = SERVICES) -> AbstractContextManager[World]:
    """Everything started on one server; everything ended after it."""
    return _world(stoppable_postgres(), workers=workers, services=services)


def replicated_world(*, workers: int, services: int = SERVICES) -> AbstractContextManager[World]:
    """The same on a server with a replica."""
    return _world(replicated_postgres(), workers=workers, services=services)


@contextmanager
def _world(
    server: AbstractContextManager[StoppablePostgres | ReplicatedPostgres], *, workers: int, services: int
) -> Iterator[World]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-outages-")))
        postgres = stack.enter_context(server)
        databases = stack.enter_context(PostgresDatabases(postgres.url).prepared())
        url = stack.enter_context(databases.fresh())
        processes = stack.enter_context(cluster(url, folder))
        serving = [processes.serve(f"api-{number}", "--no-worker") for number in range(services)]
        logs = folder / "logs"
        logs.mkdir()
        prepare(serving[0], logs, stack.enter_context(noting_server(logs / "remote.log")))
        for number in range(workers):
            processes.work(f"worker-{number}")
        yield World(postgres=postgres, databases=databases, processes=processes, services=serving, logs=logs)


@contextmanager
def noting_server(log: Path) -> Iterator[int]:
    """The server of remote notes; its port."""
    command = [sys.executable, "-I", "-S", str(_NOTING_SERVER), str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdout.close()
    finally:
        process.kill()
        process.wait()


async def under(world: World, name: str, trouble: Trouble, *, runs: int, at_once: int | None = None) -> list[str]:
    """`runs` runs while the trouble lasts; prints figures and gives what did not hold."""
    troubles, clients, began = Troubles(), Clients(world.services), time.monotonic()
    troubling = asyncio.create_task(_until_cancelled(world, trouble, troubles))
    try:
        run_ids = await clients.run(name, runs, at_once=at_once or runs)
    finally:
        troubling.cancel()
        await asyncio.wait((troubling,))
        await asyncio.to_thread(world.postgres.start)
    seconds = time.monotonic() - began
    outcome = await inspected(world.services, run_ids, name, world.logs)
    complaints = troubles.complaints + clients.seen.complaints + outcome.complaints
    if not troubling.cancelled() and (error := troubling.exception()) is not None:
        complaints.append(f"the trouble itself failed: {error!r}")
    for log in world.processes.folder.glob("*.stderr"):
        if "never retrieved" in log.read_text(errors="replace"):
            complaints.append(f"{log.name} has a failure that nothing has handled")
    if troubles.count == 0:
        complaints.append("the runs were over before there was any trouble")
    attempts = ", ".join(f"{count} at attempt {attempt}" for attempt, count in sorted(outcome.attempts.items()))
    print(
        f"{name}: {runs} runs in {seconds:.0f} s under {troubles.count} troubles; {attempts};"
        f" {outcome.unknown} calls of unknown outcome; {clients.seen.refusals} requests answered 503,"
        f" {clients.seen.cut} streams resumed; longest run {clients.seen.longest_s:.1f} s;"
        f" ready again after {troubles.ready_after_s:.2f} s at most",
        flush=True,
    )
    return [f"{name}: {complaint}" for complaint in complaints]


async def _until_cancelled(world: World, trouble: Trouble, troubles: Troubles) -> None:
    while True:
        # Whole, so that the database is back when it is over.
        whole = asyncio.create_task(_whole(world, trouble, troubles))
        try:
            await asyncio.shield(whole)
        except asyncio.CancelledError:
            await asyncio.wait((whole,))
            raise


async def _whole(world: World, trouble: Trouble, troubles: Troubles) -> None:
    await trouble(world, troubles)
    troubles.count += 1


def stopped(mode: StopMode) -> Trouble:
    """PostgreSQL is away for two seconds of every five."""

    async def trouble(world: World, troubles: Troubles) -> None:
        assert isinstance(world.postgres, StoppablePostgres)
        await asyncio.sleep(UP_S)
        await asyncio.to_thread(world.postgres.stop, mode)
        async with httpx.AsyncClient(trust_env=False, timeout=_UNREADY_S) as client:
            began = time.monotonic()
            for service in world.services:
                answer = await client.get(f"{service.url}/health/ready")
                if answer.status_code != 503 or "database" not in answer.json()["detail"]:
                    troubles.complaints.append(f"readiness without a database: {answer.status_code} {answer.text}")
            await asyncio.sleep(max(0.0, DOWN_S - (time.monotonic() - began)))
            await asyncio.to_thread(world.postgres.start)
            await _ready_again(world, troubles, client)

    return trouble


async def _ready_again(world: World, troubles: Troubles, client: httpx.AsyncClient) -> None:
    back = time.monotonic()
    for service in world.services:
        while (await client.get(f"{service.url}/health/ready")).status_code != 200:
            if time.monotonic() > back + _RECOVERY_S:
                troubles.complaints.append("a service is not ready although its database is back")
                break
            await asyncio.sleep(0.05)
    troubles.ready_after_s = max(troubles.ready_after_s, time.monotonic() - back)


async def failed_over(world: World, troubles: Troubles) -> None:
    """The primary crashes, its replica takes its place, and gets a replica itself."""
    assert isinstance(world.postgres, ReplicatedPostgres)
    await asyncio.sleep(UP_S)
    await asyncio.to_thread(world.postgres.fail_over)
    async with httpx.AsyncClient(trust_env=False, timeout=60.0) as client:
        await _ready_again(world, troubles, client)
    await asyncio.to_thread(world.postgres.repair)


async def severed(world: World, troubles: Troubles) -> None:
    """All sessions are ended by the server."""
    await asyncio.sleep(CUT_EVERY_S)
    await asyncio.to_thread(world.databases.end_sessions)


TROUBLES: dict[str, Trouble] = {
    "stopped": stopped("fast"),
    "crashed": stopped("immediate"),
    "severed": severed,
}
