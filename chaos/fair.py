"""One organization floods the queue: how long the runs of another wait, what ten organizations get, and that nothing is lost."""

import argparse
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
LEAST_INDEX = 0.95
"""Of Jain, over the starts of all organizations while each has waiting runs."""
MOST_WAITED = 2.0
"""How long a run beside a flood may wait (p99), as a multiple of the same without one."""
MODEL_MS, PLACES = 500, 4
"""How long a run has one of a worker's places at least: the flood is accepted faster than it is executed."""
_PACED_S = 1.0
_SENDERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An organization with the agent `says`, and a client with its key."""

    id: str
    client: httpx.Client

    def start(self, runs: int) -> None:
        with ThreadPoolExecutor(_SENDERS) as threads:
            list(threads.map(lambda _: self.start_one(), range(runs)))

    def start_one(self) -> str:
        answer = self.client.post("/runs", json={"agent": "says", "input": "Go."})
        answer.raise_for_status()
        return str(answer.json()["id"])

    def runs(self) -> list[Json]:
        """All of its runs, newest first."""
        found: list[Json] = []
        cursor = ""
        while True:
            answer = self.client.get("/runs", params={"limit": 100, **({"cursor": cursor} if cursor else {})})
            answer.raise_for_status()
            page = answer.json()
            found += page["data"]
            if page["next_cursor"] is None:
                return found
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
    parser.add_argument("--flood", type=int, default=1_000, help="fair: runs of the flood (default %(default)s)")
    parser.add_argument(
        "--beside", type=int, default=20, help="fair: runs beside it, one a second (default %(default)s)"
    )
    parser.add_argument(
        "--fair-on-postgresql", action="store_true", help="fair: a service and two workers on PostgreSQL"
    )


def run(arguments: argparse.Namespace) -> list[str]:
    """Prints figures; what did not hold."""
    with _service(on_postgresql=arguments.fair_on_postgresql) as service:
        model = service.script("says", a_turn("Here."), delay_ms=MODEL_MS)
        tenants = [_tenant(service, number, model) for number in range(ORGANIZATIONS)]
        try:
            return [
                *_beside_a_flood(tenants[0], tenants[1], flood=arguments.flood, beside=arguments.beside),
                *_shares(tenants, least=max(arguments.flood // 100, 1)),
            ]
        finally:
            for tenant in tenants:
                tenant.client.close()


@contextmanager
def _service(*, on_postgresql: bool) -> Iterator[Service]:
    """One process on SQLite, or a service with two workers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-fair-")))
        places = {"DRAGOMAN_WORKER_CONCURRENCY": str(PLACES)}
        if not on_postgresql:
            yield stack.enter_context(serving(folder / "home", **places))
            return
        databases = stack.enter_context(PostgresDatabases(stack.enter_context(postgres_server())).prepared())
        processes = stack.enter_context(cluster(stack.enter_context(databases.fresh()), folder))
        processes.extra.update(places)
        service = processes.serve("api", "--no-worker")
        for number in range(2):
            processes.work(f"worker-{number}")
        yield service


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


def _tenant(service: Service, number: int, model: str) -> Tenant:
    created = service.call("POST", "/organizations", {"name": f"tenant {number}"})
    headers = {"Authorization": f"Bearer {created['admin_key']['token']}"}
    client = httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=120, trust_env=False)
    client.post("/agents", json={"name": "says", "model": model}).raise_for_status()
    return Tenant(id=created["id"], client=client)


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
