"""This version and the next one, side by side on one database."""

import subprocess
from pathlib import Path

import pytest

from chaos.rolling_upgrade import fleet_of, under_load
from infrastructure.persistence.schema.revision import HEAD
from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import DRAGOMAN, ROOT, environment
from tests.e2e.versions import NEXT, next_version

pytestmark = [pytest.mark.timeout(900), pytest.mark.requirement("K7")]

CONNECTED = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND starts_with(application_name, 'dragoman-schema-')"
)
"""The server ends a session some time after its client has left."""


async def test_processes_are_replaced_by_those_of_the_next_version_without_a_failed_request_or_an_interrupted_run(
    postgres_databases: PostgresDatabases, tmp_path: Path
) -> None:
    with (
        postgres_databases.empty() as url,
        fleet_of(url, tmp_path, replacing=next_version(tmp_path)) as fleet,
    ):
        assert await under_load(fleet, batch=12, at_once=4) == []
        assert fleet.processes.ask("SELECT version_num FROM alembic_version") == [(NEXT,)]


def test_a_version_that_contracts_the_schema_waits_for_this_one_to_stop_and_is_not_used_by_it_afterwards(
    postgres_databases: PostgresDatabases, tmp_path: Path
) -> None:
    source = next_version(tmp_path, contracts=True)
    with postgres_databases.empty() as url, cluster(url, tmp_path) as processes, processes.running:
        service = processes.serve("service", "--no-worker")

        def dragoman(*command: str, **settings: str) -> "subprocess.CompletedProcess[str]":
            return subprocess.run(
                [*DRAGOMAN, *command],
                env=environment(tmp_path / "home", **processes.settings, **settings),
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )

        checked = dragoman("db", "upgrade", "--check", PYTHONPATH=str(source))
        assert checked.returncode == 1
        assert f"It applies {NEXT}." in checked.stdout
        assert f"Still connected: processes of revision {HEAD}." in checked.stdout
        refused = dragoman("db", "upgrade", PYTHONPATH=str(source))
        assert refused.returncode == 1
        assert "dragoman drain" in refused.stderr
        assert service.call("GET", "/agents")["data"] == []
        assert service.stop() == 0
        until(lambda: processes.ask(CONNECTED) == [], what="the end of its sessions")
        assert "upgraded" in dragoman("db", "upgrade", PYTHONPATH=str(source)).stdout
        late = dragoman("worker")
        assert late.returncode == 1
        assert f"schema revision {NEXT}, which this one, of revision {HEAD}, lacks" in late.stderr
