"""What probes see of a real process: its database away, its worker broken, its end."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest

from infrastructure.persistence.schema.revision import HEAD
from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import ROOT, environment
from tests.integration.mcp.parts import free_port
from tests.stoppable_postgres import stoppable_postgres

_PARTS = """
import asyncio
from infrastructure.container import Container
from infrastructure.settings import load_settings
from interfaces.service import running

async def main() -> None:
    container = Container(settings=load_settings())
    readiness = container.readiness()

    async def told() -> None:
        # On a slow machine the database may answer too late.
        while "database" in (parts := [found.part for found in await readiness.problems()]):
            await asyncio.sleep(0.1)
        print(*parts or ["ready"])

    async with running(container):
        await told()
        for name in ("timers", "run-queue"):
            [loop] = [task for task in asyncio.all_tasks() if task.get_name() == name]
            loop.cancel()
            await asyncio.wait((loop,))
            await told()
    await told()

asyncio.run(main())
"""


def stands_at(url: str, revision: str) -> None:
    """As if another version had upgraded the database."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", (revision,))


def is_ready(address: str) -> bool:
    answer = httpx.get(f"{address}/health/ready", timeout=60)
    return answer.is_success and answer.json() == {"status": "ready"}


def lacks(address: str, part: str) -> bool:
    """Whether it is not ready for this reason alone."""
    return parts_of(httpx.get(f"{address}/health/ready", timeout=60)) == [part]


def parts_of(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "not_ready"
    return [fault["path"] for fault in answer.json()["errors"]]


@pytest.mark.requirement("G2")
def test_a_loop_of_the_worker_that_ends_makes_its_process_unready_and_so_does_stopping(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PARTS],
        env=environment(tmp_path / "home"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ready", "worker", "worker queue", "stopping"]


@pytest.mark.requirement("G2", "E6")
@pytest.mark.timeout(300)
def test_services_and_workers_say_that_the_database_was_upgraded_or_is_away_and_live_on(tmp_path: Path) -> None:
    port = free_port()
    with (
        stoppable_postgres() as server,
        PostgresDatabases(server.url).prepared() as databases,
        databases.fresh() as url,
        cluster(url, tmp_path) as processes,
        processes.running,
    ):
        service = processes.serve("service", "--no-worker")
        processes.work("worker", DRAGOMAN_METRICS_PORT=str(port))
        addresses = (service.url, f"http://127.0.0.1:{port}")
        for address in addresses:
            until(partial(is_ready, address), what=f"{address} to be ready")
        stands_at(databases.owner_url(url), "9999")
        for address in addresses:
            until(partial(lacks, address, "migrations"), what=f"{address} to find the other revision")
            assert httpx.get(f"{address}/health/live", timeout=60).status_code == 200
        stands_at(databases.owner_url(url), HEAD)
        server.stop("fast")
        try:
            for address in addresses:
                assert "database" in parts_of(httpx.get(f"{address}/health/ready", timeout=60))
                assert httpx.get(f"{address}/health/live", timeout=60).status_code == 200
                assert "dragoman_database_up 0.0" in httpx.get(f"{address}/metrics", timeout=60).text
        finally:
            server.start()
        for address in addresses:
            until(partial(is_ready, address), what=f"{address} to be ready")
