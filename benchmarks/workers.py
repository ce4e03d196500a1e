"""Services and workers on one PostgreSQL: what a second one adds to the throughput, and how soon
the runs of a killed worker go on.

`python -m benchmarks.workers` prints it; `make bench` too. One worker's concurrency is the limit,
not the machine: the model answers after 200 ms, and few runs at a time leave two cores room for
everything else that takes part. Two services and two workers are compared with one of each under a
share of a core for each of them, for the same reason.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.calls import answered, post_request, tool_call
from benchmarks.figures import Budget, held
from benchmarks.gateway import LIMITS
from benchmarks.processes import counterpart
from benchmarks.raw_http import RawClient
from benchmarks.shares import shares_of_a_core
from benchmarks.upstreams import MODERN
from tests.databases import PostgresDatabases, postgres_server
from tests.e2e.postgres import Cluster, Worker, cluster
from tests.e2e.service import Service

TOOL_CALLS = 3
MODEL_S = 0.2
CONCURRENCY = 4
RUNS = 80
CLIENTS = 4 * CONCURRENCY
SHARE = 0.05
"""Of a core, for each service and worker that is compared: two of each, PostgreSQL and the load fit
into two cores, though other work takes most of them."""
_SHARED_MODEL_S, _SHARED_CONCURRENCY, _SHARED_CLIENTS = 0.02, 16, 16
_SHARED_RUNS, _SHARED_CALLS = 100, 500
_AGENT = "steady"
_PATIENCE_S, _LOOK_S = 60.0, 0.02
_MICROSECONDS = 1_000_000
_SECOND = Budget(what="throughput of two workers", limit=1.7, unit="of one's", at_least=True)
_TWO_OF_EACH = Budget(
    what="runs of two services and two workers, each with a share of a core",
    limit=1.8,
    unit="of one of each",
    at_least=True,
)
_TWO_SERVICES = Budget(
    what="gateway calls of two services, each with a share of a core", limit=1.8, unit="of one's", at_least=True
)
_TAKEN_UP = Budget(what="until a killed worker's runs are taken up, after their leases", limit=5, unit="s")

_HOLDERS = "SELECT DISTINCT worker_id FROM run WHERE status = 'in_progress' AND worker_id IS NOT NULL"
_STANDING = "SELECT id, attempt, lease_expires_at, status FROM run WHERE id = ANY(%s)"


@contextmanager
def some_services(
    count: int = 2, *, model_s: float = MODEL_S, concurrency: int = CONCURRENCY
) -> Iterator[tuple[Cluster, list[Service]]]:
    """Services without workers, an agent to run, and a place to start workers at."""
    with ExitStack() as stack:
        model = stack.enter_context(counterpart("model", str(TOOL_CALLS), str(model_s)))
        mcp = stack.enter_context(counterpart("mcp"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
        databases = stack.enter_context(PostgresDatabases(stack.enter_context(postgres_server())).prepared())
        processes = stack.enter_context(cluster(stack.enter_context(databases.fresh()), folder))
        models = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1"}
        processes.extra.update(models, **LIMITS, DRAGOMAN_WORKER_CONCURRENCY=str(concurrency))
        services = [processes.serve(f"api-{number}", "--no-worker") for number in range(count)]
        service = services[0]
        server = {"slug": "bench", "kind": "http", "url": f"http://127.0.0.1:{mcp}/mcp", "max_concurrency": 100}
        service.call("POST", "/mcp-servers", server)
        service.agent(_AGENT, "openai:bench", mcp_servers=["bench"])
        yield processes, services


async def _driven(services: Sequence[Service], runs: int, *, clients: int = CLIENTS) -> float:
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
        for number in range(clients):
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


def two_of_each() -> tuple[tuple[float, float], tuple[float, float]]:
    """Runs per second of one service and one worker, and of two of each; then gateway calls per
    second of one service, and of two. Each of these processes has the same share of a core."""
    with some_services(1, model_s=_SHARED_MODEL_S, concurrency=_SHARED_CONCURRENCY) as (processes, services):
        workers = [processes.work("worker-0")]
        token = services[0].call("POST", "/gateway-sessions", {"agent_id": _AGENT})["token"]
        one = _shared(services, workers, token, of=1)
        services.append(processes.serve("api-1", "--no-worker"))
        workers.append(processes.work("worker-1"))
        two = _shared(services, workers, token, of=2)
    return (one[0], two[0]), (one[1], two[1])


def _shared(services: Sequence[Service], workers: Sequence[Worker], token: str, *, of: int) -> tuple[float, float]:
    """Runs and gateway calls per second."""
    clients = of * _SHARED_CLIENTS
    asyncio.run(_driven(services, 2 * clients, clients=clients))
    _calls(services, token, 2 * clients)
    pids = [*(service.process.pid for service in services), *(worker.process.pid for worker in workers)]
    with shares_of_a_core(pids, SHARE):
        runs = asyncio.run(_driven(services, of * _SHARED_RUNS, clients=clients))
        return runs, _calls(services, token, of * _SHARED_CALLS)


def _calls(services: Sequence[Service], token: str, calls: int) -> float:
    """Calls per second through all services at once."""
    body, headers = tool_call("mcp__bench__echo", MODERN)
    headers["Authorization"] = f"Bearer {token}"
    each = calls // len(services)

    def called(service: Service) -> float:
        port = int(service.url.rpartition(":")[2])
        return answered(port, post_request(port, "/mcp", body, headers), calls=each, concurrency=_SHARED_CLIENTS).wall_s

    with ThreadPoolExecutor(len(services)) as threads:
        return each * len(services) / max(threads.map(called, services))


def recovery(processes: Cluster, service: Service, workers: Sequence[Worker]) -> list[float]:
    """Kill a worker with runs in hand; for each of them, the seconds from the end of its lease
    until another one had it."""
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
    (one_of_each, both), (one_service, two_services) = two_of_each()
    with some_services() as (processes, services):
        one, two, workers = throughput(processes, services)
        after = recovery(processes, services[0], workers)
    return [
        f"On PostgreSQL, with two services, a model that answers after {MODEL_S * 1000:.0f} ms and {CONCURRENCY} runs at a time"
        f" per worker: one worker {one:.1f} runs/s, two",
        f"{two:.1f}, {two / one:.2f} times as many. With {SHARE:.0%} of a core for each process and a model that answers after"
        f" {_SHARED_MODEL_S * 1000:.0f} ms, one service and one worker execute {one_of_each:.1f} runs/s, two of each {both:.1f}"
        f" ({both / one_of_each:.2f}); one service answers {one_service:.0f} gateway calls/s, two {two_services:.0f}"
        f" ({two_services / one_service:.2f}). Of a worker that was killed, {len(after)} runs were taken up"
        f" {statistics.median(after):.2f} s after their leases had run",
        f"out (median), {max(after):.2f} s at the latest, and none was lost (`python -m benchmarks.workers`).",
        *held(
            (_SECOND, two / one),
            (_TWO_OF_EACH, both / one_of_each),
            (_TWO_SERVICES, two_services / one_service),
            (_TAKEN_UP, max(after)),
        ),
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join([*report(), ""]))
