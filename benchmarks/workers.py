"""Workers on one PostgreSQL: what a second one adds to the throughput, and how soon the runs of a killed one go on.

`python -m benchmarks.workers` prints it; `make bench` too. One worker's concurrency is the limit, not the machine: the model
answers after 200 ms, and few runs at a time leave two cores room for everything else that takes part.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.figures import Budget, held
from benchmarks.processes import counterpart
from benchmarks.raw_http import RawClient
from tests.databases import PostgresDatabases, postgres_server
from tests.e2e.postgres import Cluster, Worker, cluster
from tests.e2e.service import Service

TOOL_CALLS = 3
MODEL_S = 0.2
CONCURRENCY = 4
RUNS = 80
CLIENTS = 4 * CONCURRENCY
_AGENT = "steady"
_PATIENCE_S, _LOOK_S = 60.0, 0.02
_MICROSECONDS = 1_000_000
_SECOND = Budget(what="throughput of two workers", limit=1.7, unit="of one's", at_least=True)
_TAKEN_UP = Budget(what="until a killed worker's runs are taken up, after their leases", limit=5, unit="s")

_HOLDERS = "SELECT DISTINCT worker_id FROM run WHERE status = 'in_progress' AND worker_id IS NOT NULL"
_STANDING = "SELECT id, attempt, lease_expires_at, status FROM run WHERE id = ANY(%s)"


@contextmanager
def two_services() -> Iterator[tuple[Cluster, list[Service]]]:
    """Two services without workers, an agent to run, and a place to start workers at."""
    with ExitStack() as stack:
        model = stack.enter_context(counterpart("model", str(TOOL_CALLS), str(MODEL_S)))
        mcp = stack.enter_context(counterpart("mcp"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
        databases = stack.enter_context(PostgresDatabases(stack.enter_context(postgres_server())).prepared())
        processes = stack.enter_context(cluster(stack.enter_context(databases.fresh()), folder))
        models = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1"}
        processes.extra.update(models, DRAGOMAN_WORKER_CONCURRENCY=str(CONCURRENCY))
        services = [processes.serve(f"api-{number}", "--no-worker") for number in range(2)]
        service = services[0]
        service.call("POST", "/mcp-servers", {"slug": "bench", "kind": "http", "url": f"http://127.0.0.1:{mcp}/mcp"})
        service.agent(_AGENT, "openai:bench", mcp_servers=["bench"])
        yield processes, services


async def _driven(services: Sequence[Service], runs: int) -> float:
    """Runs per second, each created and awaited over HTTP."""
    left = iter(range(runs))
    body = json.dumps({"agent": _AGENT, "input": "go"}).encode()

    async def client(service: Service) -> None:
        connection = RawClient(int(service.url.rpartition(":")[2]))
        for _ in left:
            status, answer = await connection.post(
                "/v1/runs/wait", body, f"Authorization: Bearer {services[0].key}\r\n"
            )
            if status != 200 or json.loads(answer)["run"]["status"] != "completed":
                raise SystemExit(f"a run did not complete: {status} {answer[:500]!r}")
        await connection.close()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(services[number % len(services)]))
    return runs / (time.perf_counter() - began)


def throughput(processes: Cluster, services: Sequence[Service]) -> tuple[float, float, list[Worker]]:
    """Runs per second with one worker, with two, and the workers."""
    workers = [processes.work("worker-0")]
    asyncio.run(_driven(services, 2 * CLIENTS))
    one = asyncio.run(_driven(services, RUNS))
    workers.append(processes.work("worker-1"))
    asyncio.run(_driven(services, 2 * CLIENTS))
    return one, asyncio.run(_driven(services, 2 * RUNS)), workers


def recovery(processes: Cluster, service: Service, workers: Sequence[Worker]) -> list[float]:
    """Kill a worker with runs in hand; for each of them, the seconds from the end of its lease until another one had it."""
    run_ids = [service.start_run(_AGENT) for _ in range(4 * CONCURRENCY)]
    while len(processes.ask(_HOLDERS)) < len(workers):
        time.sleep(_LOOK_S)
    workers[0].kill()
    deadline = time.monotonic() + _PATIENCE_S
    lapses: dict[str, float] = {}
    taken_up: dict[str, float] = {}
    unfinished = len(run_ids)
    while unfinished:
        if time.monotonic() > deadline:
            raise SystemExit(f"{unfinished} runs have not ended")
        now, rows = time.time(), processes.ask(_STANDING, run_ids)
        for run_id, attempt, expires, _ in rows:
            if attempt > 1:
                taken_up.setdefault(run_id, now)
            elif expires is not None:
                lapses[run_id] = expires / _MICROSECONDS
        unfinished = sum(status != "completed" for *_, status in rows)
        time.sleep(_LOOK_S)
    return [moment - lapses[run_id] for run_id, moment in taken_up.items()]


def report() -> list[str]:
    """Everything measured, as lines of docs/performance.md."""
    with two_services() as (processes, services):
        one, two, workers = throughput(processes, services)
        after = recovery(processes, services[0], workers)
    return [
        f"On PostgreSQL, with two services, a model that answers after {MODEL_S * 1000:.0f} ms and {CONCURRENCY} runs at a time"
        f" per worker: one worker {one:.1f} runs/s, two",
        f"{two:.1f}, {two / one:.2f} times as many. Of a worker that was killed, {len(after)} runs were taken up"
        f" {statistics.median(after):.2f} s after their leases had run",
        f"out (median), {max(after):.2f} s at the latest, and none was lost (`python -m benchmarks.workers`).",
        *held((_SECOND, two / one), (_TAKEN_UP, max(after))),
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join([*report(), ""]))
