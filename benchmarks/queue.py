"""How long a submitted run waits for its worker, and what a job costs: embedded, and on PostgreSQL
with the worker in another process. `python -m benchmarks.queue`; part of `make bench`.

From the call of `submit` to that of the handler: on PostgreSQL the commit, the notification and the
look-up lie between them. Runs follow each other after random pauses.
"""

import asyncio
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from benchmarks.figures import Budget, held
from benchmarks.postgres import migrated_database
from domain.ids import RunId
from infrastructure.jobs.embedded import InProcessRunQueue
from infrastructure.jobs.procrastinate_queue import ProcrastinateRunQueue
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.url import library_url

ROOT = Path(__file__).resolve().parent.parent
RUNS = 400
WARM_UP = 20
PAUSE_S = 0.02
BURST = 2_000
CONCURRENCY = 16
_EMBEDDED = Budget(what="from submitting to starting, embedded", limit=2, unit="ms")
_POSTGRES = Budget(what="from submitting to starting, on PostgreSQL", limit=20, unit="ms")
_TICKS = os.sysconf("SC_CLK_TCK")


class Submitted(Protocol):
    """The side of a queue that rings."""

    async def submit(self, *run_ids: RunId) -> None: ...


async def latencies_ms(queue: Submitted, started: Callable[[], Awaitable[float]]) -> list[float]:
    """`started` waits for the next start and says when it was, on the clock of `time.monotonic`."""
    latencies: list[float] = []
    pauses = random.Random(5)
    for number in range(WARM_UP + RUNS):
        await asyncio.sleep(pauses.random() * PAUSE_S)
        began = time.monotonic()
        await queue.submit(RunId(f"run_{number}"))
        latencies.append((await started() - began) * 1000)
    return latencies[WARM_UP:]


async def embedded() -> list[float]:
    """One process."""
    queue = InProcessRunQueue()
    starts: asyncio.Queue[float] = asyncio.Queue()

    async def note(run_id: RunId) -> None:
        starts.put_nowait(time.monotonic())

    consuming = asyncio.create_task(queue.consume(note, concurrency=CONCURRENCY))
    found = await latencies_ms(queue, starts.get)
    await queue.drain(1)
    await consuming
    return found


@contextmanager
def consumer(url: str) -> Iterator[tuple[int, IO[str]]]:
    """The other process: its id, and a line for each start."""
    arguments = [sys.executable, "-m", "benchmarks.queue", "--consume", url]
    worker = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert worker.stdout is not None
    try:
        yield worker.pid, worker.stdout
    finally:
        worker.terminate()
        worker.wait()
        worker.stdout.close()


async def scaled_out(url: str, worker: int, output: IO[str]) -> tuple[list[float], float, float]:
    """Two processes: the waits, then jobs per second of a burst and CPU milliseconds of the worker
    for each."""
    database = PostgresDatabase(url, connections=2)
    await database.start()
    queue = ProcrastinateRunQueue(library_url(url), database=database)

    async def started() -> float:
        return await asyncio.to_thread(_next_start, output)

    try:
        found = await latencies_ms(queue, started)
        cpu_before, began = _cpu_s(worker), time.monotonic()
        last = asyncio.create_task(asyncio.to_thread(_last_start, output))
        for first in range(0, BURST, 100):
            await queue.submit(*(RunId(f"burst_{number}") for number in range(first, first + 100)))
        wall_s = await last - began
        return found, BURST / wall_s, (_cpu_s(worker) - cpu_before) * 1000 / BURST
    finally:
        await database.stop()


async def consume(url: str) -> None:
    """The other process: prints when each run began."""
    database = PostgresDatabase(url, connections=1)
    await database.start()

    async def note(run_id: RunId) -> None:
        sys.stdout.write(f"{time.monotonic()}\n")
        sys.stdout.flush()

    await ProcrastinateRunQueue(library_url(url), database=database).consume(note, concurrency=CONCURRENCY)


def _next_start(output: IO[str]) -> float:
    return float(output.readline())


def _last_start(output: IO[str]) -> float:
    return [_next_start(output) for _ in range(BURST)][-1]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _described(latencies: list[float]) -> str:
    percentiles = statistics.quantiles(latencies, n=100)
    return f"{percentiles[49]:.2f} ms (95th percentile {percentiles[94]:.2f}, 99th {percentiles[98]:.2f})"


def measure() -> list[str]:
    """The lines of the report."""
    one = asyncio.run(embedded())
    with migrated_database() as url, consumer(url) as (worker, output):
        two, jobs_per_s, cpu_ms = asyncio.run(scaled_out(url, worker, output))
    return [
        f"From submitting a run to its start, median of {RUNS}: embedded {_described(one)}; on PostgreSQL, in",
        f"another process, {_described(two)}. A burst of {BURST} jobs that do nothing is",
        f"worked off by one worker at {jobs_per_s:.0f} jobs/s, {cpu_ms:.2f} ms of its CPU each (`python -m benchmarks.queue`).",
        *held((_EMBEDDED, statistics.median(one)), (_POSTGRES, statistics.median(two))),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--consume"]:
        asyncio.run(consume(sys.argv[2]))
    else:
        sys.stdout.write("\n".join([*measure(), ""]))
