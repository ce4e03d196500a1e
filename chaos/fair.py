"""One organization floods the queue: how long the runs of another wait, what ten organizations get,
that nothing is lost, and what the order costs. On SQLite in one process, and on PostgreSQL with two
services and two workers."""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx

from benchmarks.gateway import flushed_s
from benchmarks.shares import cpu_s
from domain.ids import RunId
from domain.runs.lane import Flow
from infrastructure.jobs.fair_order import FairOrder
from tests.databases import PostgresDatabases, postgres_server
from tests.e2e.postgres import cluster
from tests.e2e.service import Json, Service, a_turn, serving

ORGANIZATIONS = 10
DATABASES = ("sqlite", "postgresql")
LEAST_INDEX = 0.95
"""Of Jain, over the starts of all organizations while each has waiting runs."""
MOST_WAITED = 2.0
"""How long a run beside a flood may wait (p99), as a multiple of the same without one."""
MODEL_MS, PLACES = 100, 4
"""How long a run has one of a worker's places at least: the flood is accepted faster than it is
executed."""
MOST_COST = 0.05
"""CPU that a run takes more if the order divides places among ten organizations."""
_COST_ROUNDS, _COST_RUNS = 3, 400
_PACED_S = 1.0
_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
_SETTLED_S = 5.0
_FLUSHES = 200
_ORDERED = 5_000
_SENDERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An organization with the agents `says` and `quick`, and a client of each service with its
    key."""

    id: str
    clients: Sequence[httpx.Client]

    @property
    def client(self) -> httpx.Client:
        """Any of them."""
        return random.choice(self.clients)

    def start(self, runs: int) -> None:
        with ThreadPoolExecutor(_SENDERS) as threads:
            list(threads.map(lambda _: self.start_one(), range(runs)))

    def start_one(self, agent: str = "says") -> str:
        answer = self.client.post("/runs", json={"agent": agent, "input": "Go."})
        answer.raise_for_status()
        return str(answer.json()["id"])

    def runs(self, *, newest: int | None = None) -> list[Json]:
        """All of its runs, or so many, newest first."""
        found: list[Json] = []
        cursor = ""
        while True:
            answer = self.client.get("/runs", params={"limit": 100, **({"cursor": cursor} if cursor else {})})
            answer.raise_for_status()
            page = answer.json()
            found += page["data"]
            if page["next_cursor"] is None or (newest is not None and len(found) >= newest):
                return found[:newest]
            cursor = page["next_cursor"]

    def ended(self) -> list[Json]:
        """All of its runs, once they have ended."""
        while True:
            answer = self.client.get("/runs", params={"limit": 1, "status": "queued"})
            under_way = self.client.get("/runs", params={"limit": 1, "status": "in_progress"})
            if not answer.json()["data"] and not under_way.json()["data"]:
                return self.runs()
            time.sleep(_PACED_S)


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--flood", type=int, default=5_000, help="fair: runs of the flood (default %(default)s)")
    parser.add_argument(
        "--beside", type=int, default=60, help="fair: runs beside it, one a second (default %(default)s)"
    )
    parser.add_argument(
        "--places", type=int, default=PLACES, help="fair: of each worker; many saturate the cores (default %(default)s)"
    )
    parser.add_argument(
        "--fair-on", nargs="+", choices=DATABASES, default=DATABASES, help="fair: databases (default: both)"
    )


def run(arguments: argparse.Namespace) -> list[str]:
    """Prints figures; what did not hold."""
    complaints = []
    for database in arguments.fair_on:
        print(f"on {database}:", flush=True)
        with _world(on_postgresql=database == "postgresql", places=arguments.places) as world:
            world.services[0].script("says", a_turn("Here."), delay_ms=MODEL_MS)
            world.services[0].script("quick", a_turn("Here."))
            tenants = [_tenant(world.services, number) for number in range(ORGANIZATIONS)]
            found = [
                *_beside_a_flood(tenants[0], tenants[1], flood=arguments.flood, beside=arguments.beside),
                *_shares(tenants, least=max(arguments.flood // 100, 1)),
                *_cost(
                    tenants,
                    world.used_s,
                    runs=_COST_RUNS,
                    order_s=_order_s() if database == "sqlite" else None,
                ),
            ]
            complaints += [f"{database}: {complaint}" for complaint in found]
    return complaints


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Services, the ids of all processes, and of sessions of PostgreSQL."""

    services: Sequence[Service]
    pids: Sequence[int]
    sessions: Callable[[], Sequence[int]] = lambda: ()

    def used_s(self) -> float:
        """Their CPU time."""
        return sum(cpu_s(pid) for pid in (*self.pids, *self.sessions()))


@contextmanager
def _world(*, on_postgresql: bool, places: int) -> Iterator[World]:
    """One process on SQLite, or two services with two workers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-fair-")))
        settings = {"DRAGOMAN_WORKER_CONCURRENCY": str(places)}
        if not on_postgresql:
            service = stack.enter_context(serving(folder / "home", **settings))
            yield World(services=[service], pids=[service.process.pid])
            return
        databases = stack.enter_context(PostgresDatabases(stack.enter_context(postgres_server())).prepared())
        processes = stack.enter_context(cluster(stack.enter_context(databases.fresh()), folder))
        processes.extra.update(settings)
        services = [processes.serve(f"api-{number}", "--no-worker") for number in range(2)]
        workers = [processes.work(f"worker-{number}") for number in range(2)]
        yield World(
            services=services,
            pids=[*(one.process.pid for one in services), *(one.process.pid for one in workers)],
            sessions=lambda: [pid for (pid,) in processes.ask(_SESSIONS)],
        )


def _beside_a_flood(flooding: Tenant, other: Tenant, *, flood: int, beside: int) -> Iterator[str]:
    unloaded = _paced(other, beside)
    flooding.start(flood)
    loaded = _paced(other, beside)
    runs = {run["id"]: run for run in other.ended()}
    before, under = ([_waited_s(runs[run_id]) for run_id in found] for found in (unloaded, loaded))
    flush_ms = statistics.median(flushed_s(_FLUSHES)) * 1000
    ended = flooding.ended()
    after_flood = max(_moment(run["started_at"]) for run in ended)
    in_time = sum(_moment(runs[run_id]["created_at"]) < after_flood for run_id in loaded)
    print(
        f"start delay p50/p95/p99 without a flood {_in_ms(before)}, beside {flood} runs of another {_in_ms(under)}"
        f" ({in_time} of {beside} while it lasted); the flood waited up to {max(map(_waited_s, ended)):.1f} s",
        flush=True,
    )
    print(
        f"of the delay, until the request was answered and the run stored: {_in_ms(unloaded.values())} without a flood,"
        f" {_in_ms(loaded.values())} beside it; a flush of the disk takes {flush_ms:.1f} ms",
        flush=True,
    )
    if len(ended) != flood or any(run["status"] != "completed" for run in ended):
        yield f"{flood} runs were accepted, {sum(run['status'] == 'completed' for run in ended)} of {len(ended)} completed"
    if _percentile(under, 99) > MOST_WAITED * _percentile(before, 99):
        yield f"runs beside the flood waited {_percentile(under, 99) / _percentile(before, 99):.1f} times as long (p99)"


def _shares(tenants: Sequence[Tenant], *, least: int) -> Iterator[str]:
    """The first asks for a hundred times as many as each other one."""
    known = {tenant.id: {run["id"] for run in tenant.runs()} for tenant in tenants}
    tenants[0].start(100 * least)
    with ThreadPoolExecutor(len(tenants)) as threads:
        list(threads.map(lambda tenant: tenant.start(least), tenants[1:]))
    for tenant in tenants[1:]:
        tenant.ended()
    tenants[0].client.post("/runs/cancel", json={"all": True}).raise_for_status()
    started = sorted(
        (_moment(run["started_at"]), _moment(run["created_at"]), tenant.id)
        for tenant in tenants
        for run in tenant.ended()
        if run["id"] not in known[tenant.id] and run["started_at"] is not None
    )
    all_wait = max(created for _, created, owner in started if owner != tenants[0].id)
    contended = [owner for at, _, owner in started if at >= all_wait]
    left = {tenant.id: contended.count(tenant.id) for tenant in tenants}
    window = contended[: min(left.values()) * len(tenants)]
    counts = [window.count(tenant.id) for tenant in tenants]
    if not window:
        yield "at no moment all organizations had waiting runs: a larger flood or fewer places are needed"
        return
    index = sum(counts) ** 2 / (len(counts) * sum(count**2 for count in counts))
    print(f"Jain's index {index:.3f} over {len(window)} starts of {len(tenants)} organizations: {counts}", flush=True)
    if index < LEAST_INDEX:
        yield f"Jain's index is {index:.3f}"


def _cost(tenants: Sequence[Tenant], used_s: Callable[[], float], *, runs: int, order_s: float | None) -> Iterator[str]:
    """Runs that take no time, of one organization and of ten in turn: the order chooses among ten
    lines then, and not among one. CPU time of all processes says what that costs, whatever else the
    machine does. Where the order is our own (`order_s`), its CPU alone: ten organizations also have
    ten audit trails to seal."""
    one, ten = [], []
    for _ in range(_COST_ROUNDS):
        one.append(_cpu_of_each(tenants[:1], runs, used_s))
        ten.append(_cpu_of_each(tenants, runs, used_s))
    excess = min(ten) / min(one) - 1
    cost = excess if order_s is None else order_s / min(one)
    print(
        f"a run of one organization takes {min(one) * 1000:.2f} ms of CPU, one of {len(tenants)} {min(ten) * 1000:.2f} ms:"
        f" {excess:+.1%} (the least of {_COST_ROUNDS} rounds of {runs} runs each)"
        + ("" if order_s is None else f"; the order takes {order_s * 1e6:.0f} µs of it, {cost:.1%} of a run"),
        flush=True,
    )
    if cost > MOST_COST:
        yield f"the order takes {cost:.1%} of a run's CPU"


def _order_s() -> float:
    """CPU of the order of one process for a run among those of ten organizations: it waits, is
    taken, and leaves."""
    order, taken = FairOrder(), 0
    began = time.thread_time()
    for number in range(_ORDERED):
        of = number % ORGANIZATIONS
        order.add(RunId(f"run_{number}"), Flow(organization_id=f"org_{of}", agent_id=f"agt_{of}"))
    while (run_id := order.take()) is not None:
        order.left(run_id)
        taken += 1
    assert taken == _ORDERED
    return (time.thread_time() - began) / _ORDERED


def _cpu_of_each(tenants: Sequence[Tenant], runs: int, used_s: Callable[[], float]) -> float:
    each = runs // len(tenants)
    before = used_s()
    with ThreadPoolExecutor(_SENDERS) as threads:
        list(threads.map(lambda tenant: tenant.start_one("quick"), [*tenants] * each))
    # Asking whether they have ended would take CPU too.
    time.sleep(_SETTLED_S)
    used = used_s() - before
    if any(run["status"] != "completed" for tenant in tenants for run in tenant.runs(newest=each)):
        raise RuntimeError("runs that take no time have not ended")
    return used / (each * len(tenants))


def _tenant(services: Sequence[Service], number: int) -> Tenant:
    created = services[0].call("POST", "/organizations", {"name": f"tenant {number}"})
    headers = {"Authorization": f"Bearer {created['admin_key']['token']}"}
    clients = [
        httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=120, trust_env=False)
        for service in services
    ]
    for name in ("says", "quick"):
        clients[0].post("/agents", json={"name": name, "model": f"scripted:{name}.yaml"}).raise_for_status()
    return Tenant(id=created["id"], clients=clients)


def _paced(tenant: Tenant, runs: int) -> dict[str, float]:
    """Runs one a second, and how long each request took."""
    found = {}
    for _ in range(runs):
        began = time.perf_counter()
        run_id = tenant.start_one()
        found[run_id] = time.perf_counter() - began
        time.sleep(_PACED_S)
    return found


def _waited_s(run: Json) -> float:
    return (_moment(run["started_at"]) - _moment(run["created_at"])).total_seconds()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _in_ms(values: Iterable[float]) -> str:
    found = list(values)
    return f"{'/'.join(f'{_percentile(found, percent) * 1000:.0f}' for percent in (50, 95, 99))} ms"


def _percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * len(ordered)))]
