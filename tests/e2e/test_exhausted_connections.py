"""A database that admits no more connections: processes wait, refuse new work, and go on without
being restarted."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import Cluster, cluster
from tests.e2e.processes import until
from tests.e2e.service import a_turn, serve_to_its_end

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def processes(tmp_path: Path, postgres_databases: PostgresDatabases) -> Iterator[Cluster]:
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as prepared:
        try:
            yield prepared
        finally:
            postgres_databases.admit(-1)


@pytest.mark.requirement("E6", "E7")
def test_processes_wait_for_connections_and_never_exit(
    processes: Cluster, postgres_databases: PostgresDatabases
) -> None:
    with processes.running, ThreadPoolExecutor() as threads:
        service = processes.serve("one", "--no-worker")
        service.agent("says", service.script("says", a_turn("Here.")))
        worker = processes.work("first")
        postgres_databases.admit(0)
        postgres_databases.end_sessions(wait_s=60)
        refused = service.call("POST", "/runs", {"agent": "says", "input": "Go."}, expect=503)
        assert refused["code"] == "storage_unavailable"
        late = threads.submit(processes.work, "late")
        log = processes.folder / "late.stderr"
        until(lambda: log.exists() and "waiting for the database" in log.read_text(), what="the late worker to wait")
        assert (service.process.poll(), worker.process.poll()) == (None, None)

        postgres_databases.admit(-1)

        assert late.result().process.poll() is None
        until(lambda: service.client.get("/agents").is_success, what="the service")
        assert service.run("says")["run"]["status"] == "completed"
        assert (service.process.poll(), worker.process.poll()) == (None, None)


@pytest.mark.requirement("E7")
def test_a_process_waits_for_its_database_only_as_long_as_it_is_told(
    processes: Cluster, postgres_databases: PostgresDatabases, tmp_path: Path
) -> None:
    with processes.running:
        processes.serve("one")
        postgres_databases.admit(0)
        ended = serve_to_its_end(tmp_path / "late", **processes.settings, DRAGOMAN_DATABASE_WAIT_S="1")
        assert ended.returncode != 0
        assert "waiting for the database" in ended.stderr
        assert "Traceback" not in ended.stderr
