"""One organization floods the queue: how long the runs of another wait, what ten organizations get, that nothing is lost, and what
the order costs. On SQLite in one process, and on PostgreSQL with two services and two workers."""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx

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
"""How long a run has one of a worker's places at least: the flood is accepted faster than it is executed."""
LEAST_THROUGHPUT = 0.95
"""Of runs of ten organizations, which the order divides, as a part of those of one."""
_COST_ROUNDS = 3
_PACED_S = 1.0
_SENDERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An organization with the agents `says` and `quick`, and a client of each service with its key."""

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

    def ended(self, *, newest: int | None = None) -> list[Json]:
        """All of its runs, or so many, once they have ended."""
        while True:
            answer = self.client.get("/runs", params={"limit": 1, "status": "queued"})
            under_way = self.client.get("/runs", params={"limit": 1, "status": "in_progress"})
            if not answer.json()["data"] and not under_way.json()["data"]:
                return self.runs(newest=newest)
            time.sleep(_PACED_S)


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--flood", type=int, default=5_000, help="fair: runs of the flood (default %(default)s)")
    parser.add_argument(
        "--beside", type=int, default=60, help="fair: runs beside it, one a second (default %(default)s)"
    )
    parser.add_argument(
        "--fair-on", nargs="+", choices=DATABASES, default=DATABASES, help="fair: databases (default: both)"
    )


def run(arguments: argparse.Namespace) -> list[str]:
    """Prints figures; what did not hold."""
    complaints = []
    for database in arguments.fair_on:
        print(f"on {database}:", flush=True)
        with _services(on_postgresql=database == "postgresql") as services:
            services[0].script("says", a_turn("Here."), delay_ms=MODEL_MS)
            services[0].script("quick", a_turn("Here."))
            tenants = [_tenant(services, number) for number in range(ORGANIZATIONS)]
            found = [
                *_beside_a_flood(tenants[0], tenants[1], flood=arguments.flood, beside=arguments.beside),
                *_shares(tenants, least=max(arguments.flood // 100, 1)),
                *_cost(tenants, runs=max(arguments.flood // 10, ORGANIZATIONS)),
            ]
            complaints += [f"{database}: {complaint}" for complaint in found]
    return complaints


@contextmanager
def _services(*, on_postgresql: bool) -> Iterator[list[Service]]:
    """One process on SQLite, or two services with two workers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-fair-")))
        places = {"DRAGOMAN_WORKER_CONCURRENCY": str(PLACES)}
        if not on_postgresql:
            yield [stack.enter_context(serving(folder / "home", **places))]
            return
        databases = stack.enter_context(PostgresDatabases(stack.enter_context(postgres_server())).prepared())
        processes = stack.enter_context(cluster(stack.enter_context(databases.fresh()), folder))
        processes.extra.update(places)
        services = [processes.serve(f"api-{number}", "--no-worker") for number in range(2)]
        for number in range(2):
            processes.work(f"worker-{number}")
        yield services


def _beside_a_flood(flooding: Tenant, other: Tenant, *, flood: int, beside: int) -> Iterator[str]:
    unloaded = _paced(other, beside)
    flooding.start(flood)
    loaded = _paced(other, beside)
    runs = {run["id"]: run for run in other.ended()}
    before, under = ([_waited_s(runs[run_id]) for run_id in found] for found in (unloaded, loaded))
    ended = flooding.ended()
    after_flood = max(_moment(run["started_at"]) for run in ended)
    in_time = sum(_moment(runs[run_id]["created_at"]) < after_flood for run_id in loaded)
    print(
        f"start delay p50/p99 without a flood {_percentile(before, 50) * 1000:.0f}/{_percentile(before, 99) * 1000:.0f} ms,"
        f" beside {flood} runs of another {_percentile(under, 50) * 1000:.0f}/{_percentile(under, 99) * 1000:.0f} ms"
        f" ({in_time} of {beside} while it lasted); the flood waited up to {max(map(_waited_s, ended)):.1f} s",
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
    index = sum(counts) ** 2 / (len(counts) * sum(count**2 for count in counts)) if window else 0.0
    print(f"Jain's index {index:.3f} over {len(window)} starts of {len(tenants)} organizations: {counts}", flush=True)
    if index < LEAST_INDEX:
        yield f"Jain's index is {index:.3f}"


def _cost(tenants: Sequence[Tenant], *, runs: int) -> Iterator[str]:
    """Runs that take no time, of one organization and of ten in turn: the order chooses among ten lines then, and not among one."""
    one, ten = [], []
    for _ in range(_COST_ROUNDS):
        one.append(_throughput(tenants[:1], runs))
        ten.append(_throughput(tenants, runs))
    ratio = max(ten) / max(one)
    print(
        f"{max(one):.0f} runs/s of one organization, {max(ten):.0f} of {len(tenants)}: {ratio:.2f}"
        f" (the best of {_COST_ROUNDS} rounds of {runs} each)",
        flush=True,
    )
    if ratio < LEAST_THROUGHPUT:
        yield f"{len(tenants)} organizations have {ratio:.2f} of the throughput of one"


def _throughput(tenants: Sequence[Tenant], runs: int) -> float:
    """Runs per second, from the first request to the last end."""
    each = runs // len(tenants)
    with ThreadPoolExecutor(_SENDERS) as threads:
        list(threads.map(lambda tenant: tenant.start_one("quick"), [*tenants] * each))
    ended = [run for tenant in tenants for run in tenant.ended(newest=each)]
    began = min(_moment(run["created_at"]) for run in ended)
    return len(ended) / (max(_moment(run["finished_at"]) for run in ended) - began).total_seconds()


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


def _paced(tenant: Tenant, runs: int) -> list[str]:
    found = []
    for _ in range(runs):
        found.append(tenant.start_one())
        time.sleep(_PACED_S)
    return found


def _waited_s(run: Json) -> float:
    return (_moment(run["started_at"]) - _moment(run["created_at"])).total_seconds()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * len(ordered)))]
