"""The bound of runs in progress over processes that share one PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import Cluster, cluster
from tests.e2e.processes import until
from tests.e2e.test_postgres import assert_looked, calls_in, looking

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def processes(tmp_path: Path, postgres_databases: PostgresDatabases) -> Iterator[Cluster]:
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as prepared:
        yield prepared


@pytest.mark.requirement("K2")
def test_two_workers_run_no_more_than_the_bound_and_the_places_of_a_killed_one_come_back(processes: Cluster) -> None:
    """Before the kill the second worker may not have asked for runs yet; the look after it is the
    one that holds."""
    gate = processes.folder / "gate"
    api = processes.serve("api", "--no-worker")
    log = looking(api, gate)
    # The calls are held while a worker starts, and until the lease of the killed one has ended.
    api.call("PATCH", "/mcp-servers/watched", {"timeout_s": 150})
    api.call("PATCH", "/agents/looker", {"limits": {"tool_timeout_s": 150, "turn_tool_timeout_s": 150}})
    api.call("PATCH", "/organization", {"max_running": 2})
    doomed = processes.work("worker-1")
    first = [api.start_run("looker") for _ in range(2)]
    until(lambda: calls_in(log) == 2, what="two held calls")
    processes.work("worker-2")
    waiting = [api.start_run("looker") for _ in range(6)]
    in_progress = "SELECT count(*) FROM run WHERE status = 'in_progress'"
    assert processes.ask(in_progress) == [(2,)]
    doomed.kill()
    until(lambda: calls_in(log) == 4, patience_s=120, what="two held calls of the other worker")
    assert processes.ask(in_progress) == [(2,)]
    gate.touch()
    for run_id in (*first, *waiting):
        assert_looked(api, run_id)
