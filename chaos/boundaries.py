"""`kill -9` at every boundary of a run's steps, on both databases, and what became of the run."""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from sqlalchemy import create_engine, select, text

from chaos.deadly import lines_of
from chaos.scenario import Json, Place, answer, drive, first_key, service, set_up, worker
from chaos.verdict import Ending, Remains, Story, complaints
from domain.runs.ledger import ToolCallState
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.engine.postgres.url import library_url
from infrastructure.persistence.tables import idempotency_key, run_event, tool_call
from tests.databases import PostgresDatabases, postgres_server
from tests.e2e.processes import carrying

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 180.0
THRICE = 50
LINGER_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One run whose process was to be killed at each of `fatal`. It was not if it never got
    there."""

    fatal: Sequence[str | None]
    reached: bool
    passed: Sequence[str]
    complaints: Sequence[str]


@dataclass(slots=True, kw_only=True)
class Doomed:
    """Starts the processes that are killed."""

    process: asyncio.subprocess.Process
    child: int | None = None

    @staticmethod
    @asynccontextmanager
    async def ready(log: Path) -> AsyncIterator["Doomed"]:
        """What they say goes to `log`."""
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "chaos.doomed", cwd=ROOT, stdin=-1, stdout=-1, stderr=stderr
            )
        doomed = Doomed(process=process)
        try:
            yield doomed
        finally:
            process.kill()
            await process.wait()
            if doomed.child is not None:
                os.kill(doomed.child, signal.SIGKILL)

    async def begin(self, **order: str | None) -> int:
        """Start one; its id."""
        assert self.process.stdin is not None
        given = {name: value for name, value in order.items() if value is not None}
        self.process.stdin.write(json.dumps(given).encode() + b"\n")
        self.child = await self._answer()
        return self.child

    async def ended(self) -> int:
        """Its exit status, once it has ended."""
        status = await self._answer()
        self.child = None
        return status

    async def _answer(self) -> int:
        assert self.process.stdout is not None
        return int(await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S))


@dataclass(slots=True, kw_only=True)
class Stage:
    """Where cycles are played, one at a time. `charged` are the model calls of those that are
    over."""

    place: Place
    doomed: Doomed
    charged: int = 0
    _keys: int = field(default=0)

    def new_key(self) -> str:
        """The idempotency key of a cycle's run."""
        self._keys += 1
        self.place.trace.unlink(missing_ok=True)
        self.place.log.unlink(missing_ok=True)
        return f"cycle-{self._keys}"

    async def begin(self, role: str, fatal: str | None, key: str) -> int:
        """Start the process that is to be killed."""
        place = self.place
        return await self.doomed.begin(
            role=role, folder=str(place.folder), database_url=place.database_url, fatal=fatal, key=key
        )

    async def remains(self, key: str, *, killed: bool) -> Remains:
        """Once the killed process and all it started are gone."""
        deadline = time.monotonic() + PATIENCE_S
        while carrying(str(self.place.log)):
            assert time.monotonic() < deadline, "processes are left"
            await asyncio.sleep(0.01)
        return await asyncio.to_thread(_remains, self.place, key, killed=killed)

    async def judged(
        self, client: httpx.AsyncClient, runs: tuple[str, str], fatal: Sequence[str | None], remains: Sequence[Remains]
    ) -> Cycle:
        """The cycle, now that its runs have ended."""
        first, second = [await _ended(client, run_id) for run_id in runs]
        usage = await answer(client, "GET", "/usage?limit=100")
        charged = sum(entry["model_calls"] for entry in usage["data"])
        ending = Ending(
            first=first,
            second=second,
            chain=await _chain(client),
            model_calls=charged - self.charged,
            log=lines_of(self.place.log),
        )
        self.charged = charged
        return Cycle(
            fatal=fatal,
            reached=all(each.killed for each in remains),
            passed=lines_of(self.place.trace),
            complaints=complaints(remains, ending),
        )


async def _chain(client: httpx.AsyncClient) -> Json:
    """The check of the audit chain. On a busy machine sealing may have to be tried again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        chain = await answer(client, "GET", "/audit-events/verify")
        if chain["ok"] or not chain["unsealed"] or time.monotonic() > deadline:
            return chain
        await asyncio.sleep(0.1)


async def _ended(client: httpx.AsyncClient, run_id: str) -> Story:
    ended = await answer(client, "GET", f"/runs/{run_id}/wait")
    return Story(
        run=ended["run"],
        messages=ended["messages"],
        events=(await answer(client, "GET", f"/runs/{run_id}/events?limit=200"))["data"],
        audit=(await answer(client, "GET", f"/audit-events?run_id={run_id}&limit=100"))["data"],
    )


def _remains(place: Place, key: str, *, killed: bool) -> Remains:
    """The second run of the cycle as it is stored, nothing if it is not; and what was settled in
    either."""
    if place.database_url is None:
        engine = create_engine(f"sqlite:///{place.home / 'dragoman.db'}")
    else:
        engine = create_engine(library_url(place.database_url))
    with engine.begin() as connection:
        if place.database_url is not None:
            connection.execute(text(f"SET ROLE {SYSTEM_ROLE}"))
        of_key = select(idempotency_key.c.run_id)
        both = of_key.where(idempotency_key.c.key.in_((key, first_key(key))))
        events = select(run_event.c.seq, run_event.c.type).where(
            run_event.c.run_id.in_(of_key.where(idempotency_key.c.key == key))
        )
        settled = select(tool_call.c.id).where(
            tool_call.c.run_id.in_(both), tool_call.c.state == ToolCallState.SETTLED.value
        )
        found = Remains(
            killed=killed,
            events=[(row.seq, row.type) for row in connection.execute(events.order_by(run_event.c.seq))],
            settled=frozenset(connection.execute(settled).scalars()),
            log=lines_of(place.log),
        )
    engine.dispose()
    return found


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator["SqliteStage"]:
    """A stage on which the service is killed, with all that it does. Each cycle begins with a new
    HOME."""
    place, template = Place(folder=folder), folder / "template"
    async with service(place, worker=False) as client:
        await set_up(client, place)
    place.home.rename(template)
    async with Doomed.ready(folder / "doomed.log") as doomed:
        yield SqliteStage(place=place, doomed=doomed, template=template)


@dataclass(slots=True, kw_only=True)
class SqliteStage(Stage):
    """Cycles of `dragoman serve` on SQLite."""

    template: Path

    async def play(self, *fatal: str | None) -> Cycle:
        """One cycle, in which a service is killed for each of these."""
        key, self.charged = self.new_key(), 0
        shutil.rmtree(self.place.home, ignore_errors=True)
        shutil.copytree(self.template, self.place.home)
        remains = [await self._killed(each, key) for each in fatal]
        async with service(self.place) as client:
            return await self.judged(client, await drive(client, self.place, key), fatal, remains)

    async def _killed(self, fatal: str | None, key: str) -> Remains:
        await self.begin("service", fatal, key)
        return await self.remains(key, killed=await self.doomed.ended() == -signal.SIGKILL)


@asynccontextmanager
async def on_postgres(folder: Path, url: str) -> AsyncIterator["PostgresStage"]:
    """A stage on which a worker is killed, beside a service that only answers requests."""
    place = Place(folder=folder, database_url=url)
    async with (
        service(place, worker=False) as client,
        Doomed.ready(folder / "doomed.log") as doomed,
    ):
        await set_up(client, place)
        yield PostgresStage(place=place, doomed=doomed, client=client)


@dataclass(slots=True, kw_only=True)
class PostgresStage(Stage):
    """Cycles of `dragoman worker` on PostgreSQL."""

    client: httpx.AsyncClient

    async def play(self, fatal: str | None) -> Cycle:
        """One cycle. The service sees nothing of it but that its run takes longer."""
        key = self.new_key()
        worker_id = await self.begin("worker", fatal, key)
        driving = asyncio.create_task(drive(self.client, self.place, key))
        ended = asyncio.create_task(self.doomed.ended())
        await asyncio.wait((driving, ended), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await asyncio.wait((ended,), timeout=LINGER_S)
        with suppress(ProcessLookupError):
            os.kill(worker_id, signal.SIGKILL)
        await ended
        remains = await self.remains(key, killed=fatal in lines_of(self.place.trace))
        async with AsyncExitStack() as stack:
            if not driving.done():
                await stack.enter_async_context(worker(self.place, successor=True))
            runs = await asyncio.wait_for(driving, PATIENCE_S)
        return await self.judged(self.client, runs, [fatal], [remains])


@asynccontextmanager
async def beside_a_worker(folder: Path, url: str) -> AsyncIterator["ServiceStage"]:
    """A stage on which a service that only answers requests is killed, beside a worker that goes
    on."""
    place = Place(folder=folder, database_url=url)
    async with service(place, worker=False) as client:
        await set_up(client, place)
    async with worker(place), Doomed.ready(folder / "doomed.log") as doomed:
        yield ServiceStage(place=place, doomed=doomed)


@dataclass(slots=True, kw_only=True)
class ServiceStage(Stage):
    """Cycles of `dragoman serve --no-worker` on PostgreSQL."""

    async def play(self, fatal: str | None) -> Cycle:
        """One cycle. Clients ask the next service, with the same idempotency key."""
        key = self.new_key()
        await self.begin("api", fatal, key)
        remains = await self.remains(key, killed=await self.doomed.ended() == -signal.SIGKILL)
        async with service(self.place, worker=False) as client:
            return await self.judged(client, await drive(client, self.place, key), [fatal], [remains])


AnyStage = SqliteStage | PostgresStage | ServiceStage


async def boundaries_of(stage: AnyStage) -> tuple[str, ...]:
    """All that a run passes that nobody kills, in order. Raises AssertionError if even that one is
    not as it must be."""
    cycle = await stage.play(None)
    assert not cycle.complaints, cycle.complaints
    return tuple(cycle.passed)


def spread(boundaries: Sequence[str], count: int) -> list[str]:
    """`count` of them, from first to last, as far from each other as they can be."""
    last = len(boundaries) - 1
    return [boundaries[round(place * last / (count - 1))] for place in range(min(count, len(boundaries)))]


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--boundaries", type=int, help="how many on each database (default: all)")
    parser.add_argument(
        "--thrice", type=int, default=THRICE, help="runs whose service is killed three times (default %(default)s)"
    )


def run(arguments: argparse.Namespace) -> list[str]:
    """Every boundary on both databases; what did not hold."""
    with tempfile.TemporaryDirectory(prefix="dragoman-chaos-") as folder:
        return asyncio.run(_run(Path(folder), arguments.boundaries, arguments.thrice))


async def _run(folder: Path, count: int | None, thrice: int) -> list[str]:
    async with on_sqlite(_made(folder / "sqlite")) as sqlite:
        found = await _all("SQLite, serve", sqlite, count)
        found += await _again_and_again(sqlite, thrice)
    with postgres_server() as server, PostgresDatabases(server).prepared() as databases:
        with databases.fresh() as url:
            async with on_postgres(_made(folder / "workers"), url) as workers:
                found += await _all("PostgreSQL, worker", workers, count)
        with databases.fresh() as url:
            async with beside_a_worker(_made(folder / "services"), url) as services:
                found += await _all("PostgreSQL, serve --no-worker", services, count)
    return found


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def _again_and_again(stage: SqliteStage, count: int) -> list[str]:
    """The service is killed, and so is the next one, and the one after it, each somewhere."""
    began, chance = time.monotonic(), random.Random(count)
    found: list[str] = []
    for _ in range(count):
        cycle = await stage.play(*(f"#{chance.randint(1, 120)}" for _ in range(3)))
        found += [f"SQLite, killed at {cycle.fatal}: {complaint}" for complaint in cycle.complaints]
    _print("SQLite, serve, thrice", f"{count} runs", found, began)
    return found


async def _all(name: str, stage: AnyStage, count: int | None) -> list[str]:
    began = time.monotonic()
    boundaries = await boundaries_of(stage)
    found: list[str] = []
    killed = 0
    for fatal in boundaries if count is None else spread(boundaries, count):
        cycle = await stage.play(fatal)
        killed += cycle.reached
        found += [f"{name}, killed at {fatal}: {complaint}" for complaint in cycle.complaints]
    _print(name, f"{len(boundaries)} boundaries, killed at {killed} of them", found, began)
    return found


def _print(name: str, what: str, found: Sequence[str], began: float) -> None:
    print(f"{name:<30} {what}   {len(found)} complaints   {time.monotonic() - began:.0f} s", flush=True)
