"""The service on a real PostgreSQL: alone, and as API and worker processes that share the work."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import Cluster, cluster
from tests.e2e.processes import descendants, environment_of, until
from tests.e2e.service import (
    DRAGOMAN,
    ROOT,
    Json,
    Service,
    a_turn,
    assert_consistent,
    environment,
    results_by_tool,
)
from tests.e2e.streams import stream
from tests.integration.mcp.parts import free_port

pytestmark = pytest.mark.timeout(600)

START_S = 120.0
LOOK, HELD = "mcp__watched__look", "mcp__watched__held_look"


@pytest.fixture
def processes(tmp_path: Path, postgres_databases: PostgresDatabases) -> Iterator[Cluster]:
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as prepared:
        yield prepared


def looking(service: Service, gate: Path) -> Path:
    """An agent `looker` whose one call is answered once the gate is there; its server's log."""
    log = service.watched_server("watched", trusted=True)
    model = service.script(
        "looking",
        a_turn("I look.", (HELD, {"text": "around", "gate": str(gate)})),
        a_turn("The server said: {{ results.mcp__watched__held_look }}"),
    )
    service.agent("looker", model, mcp_servers=["watched"])
    return log


def status_of(service: Service, run_id: str) -> str:
    return str(service.call("GET", f"/runs/{run_id}")["status"])


def is_completed(service: Service, run_id: str) -> bool:
    """Asked for while the service may have lost its database."""
    answer = service.client.get(f"/runs/{run_id}")
    if not answer.is_success:
        return False
    assert answer.json()["error"] is None, answer.text
    return bool(answer.json()["status"] == "completed")


def calls_in(log: Path) -> int:
    return log.read_text().count("called ") if log.exists() else 0


def assert_looked(service: Service, run_id: str) -> Json:
    ended = service.wait(run_id)
    assert ended["run"]["status"] == "completed"
    assert ended["run"]["output"] == "The server said: held_look says around"
    assert_consistent(ended["messages"], service.events(run_id))
    return ended


@pytest.mark.requirement("E6")
def test_one_process_serves_and_executes_and_finds_everything_again_after_a_restart(processes: Cluster) -> None:
    gate = processes.folder / "gate"
    gate.touch()
    with processes.running:
        service = processes.serve("one")
        ready = service.client.get(f"{service.url}/health/ready")
        assert ready.status_code == 200, ready.text
        looking(service, gate)
        first = service.start_run("looker")
        assert_looked(service, first)
    again = processes.serve("one")
    assert again.call("GET", f"/runs/{first}")["status"] == "completed"
    answer = again.run("looker")
    assert answer["run"]["status"] == "completed"
    verdict = again.call("GET", "/audit-events?limit=1")
    assert verdict["data"]


@pytest.mark.requirement("E2", "E4", "E6", "G2", "K4")
def test_workers_share_the_runs_and_one_that_is_killed_loses_none(processes: Cluster) -> None:
    gate = processes.folder / "gate"
    first, second = processes.serve("api-1", "--no-worker"), processes.serve("api-2", "--no-worker")
    log = looking(first, gate)
    doomed = processes.work("worker-1", DRAGOMAN_WORKER_CONCURRENCY="2")
    port = free_port()
    processes.work("worker-2", DRAGOMAN_WORKER_CONCURRENCY="2", DRAGOMAN_METRICS_PORT=str(port))
    runs = [service.start_run("looker") for service in (first, second, first, second)]
    until(lambda: calls_in(log) == len(runs), what="four held calls")
    holders = processes.ask("SELECT worker_id, count(*) FROM run GROUP BY worker_id")
    assert sorted(count for _, count in holders) == [2, 2], "each works as much as it may"
    doomed.kill()
    gate.touch()
    attempts = [assert_looked(second, run_id)["run"]["attempt"] for run_id in runs]
    assert sorted(attempts) == [1, 1, 2, 2]
    assert calls_in(log) == len(runs) + 2, "what was read in vain is read again, nothing else"
    assert processes.ask("SELECT count(*) FROM run WHERE worker_id IS NOT NULL AND status = 'in_progress'") == [(0,)]
    ready = f"http://127.0.0.1:{port}/health/ready"
    until(lambda: httpx.get(ready, timeout=60).json() == {"status": "ready"}, what="a worker that is ready")
    wanted = {"dragoman_runs_recovered_total 2.0", 'dragoman_runs_ended_total{status="completed"} 4.0'}
    metrics = f"http://127.0.0.1:{port}/metrics"
    until(lambda: wanted <= set(httpx.get(metrics, timeout=60).text.splitlines()), what=f"{wanted}")


@pytest.mark.requirement("E4", "E7")
def test_a_worker_that_is_told_to_stop_hands_its_runs_to_the_others(processes: Cluster) -> None:
    gate = processes.folder / "gate"
    api = processes.serve("api", "--no-worker")
    log = looking(api, gate)
    leaving = processes.work("worker-1")
    run_id = api.start_run("looker")
    until(lambda: calls_in(log) == 1, what="the held call")
    processes.work("worker-2")
    assert leaving.stop() == 0
    assert status_of(api, run_id) in {"queued", "in_progress"}
    gate.touch()
    assert assert_looked(api, run_id)["run"]["attempt"] == 2


@pytest.mark.requirement("E2", "E3", "E4", "C5")
def test_a_worker_that_was_frozen_past_its_lease_changes_nothing_when_it_comes_back(processes: Cluster) -> None:
    gate = processes.folder / "gate"
    api = processes.serve("api", "--no-worker")
    log = looking(api, gate)
    text = "".join(f"{number} " for number in range(120))
    api.agent("talker", api.script("talking", a_turn(text), delay_ms=150, chunk_chars=4))
    frozen = processes.work("worker-1", DRAGOMAN_WORKER_CONCURRENCY="2")
    calling = api.start_run("looker")
    until(lambda: calls_in(log) == 1, what="the held call")
    talking = api.start_run("talker")  # not before: it must not have said everything by then
    until(lambda: "message.delta" in types_of(api, talking), what="the first words")
    frozen.process.send_signal(signal.SIGSTOP)
    other = processes.work("worker-2")
    until(lambda: calls_in(log) == 2, 120, what="the call of the second worker")
    gate.touch()  # the first worker's call is answered too, and so is its model: it will want to store that
    attempts = [assert_looked(api, calling)["run"]["attempt"], api.wait(talking)["run"]["attempt"]]
    assert attempts == [2, 2]
    before = rows(processes)
    frozen.process.send_signal(signal.SIGCONT)
    until(
        lambda: frozen.log.read_text(encoding="utf-8").count("this worker stops writing the run") == 2,
        what="the first worker's notice",
    )
    assert rows(processes) == before
    assert other.stop() == 0
    assert api.run("looker")["run"]["status"] == "completed", "it works as before"


def types_of(service: Service, run_id: str) -> list[str]:
    return [event["type"] for event in service.events(run_id)]


def rows(processes: Cluster) -> dict[str, list[str]]:
    """All that is stored of runs."""
    names = (
        "run",
        "run_event",
        "message",
        "tool_call",
        "approval",
        "timer",
        "usage",
        "budget_reservation",
        "audit_event",
    )
    return {name: sorted(map(repr, processes.ask(f"SELECT * FROM {name}"))) for name in names}


@pytest.mark.requirement("E4", "E6")
def test_runs_survive_that_all_connections_are_cut_again_and_again(
    processes: Cluster, postgres_databases: PostgresDatabases
) -> None:
    api = processes.serve("api", "--no-worker")
    api.watched_server("watched", trusted=True)
    looks = [a_turn("Again.", (LOOK, {"text": str(number)})) for number in range(6)]
    api.agent("busy", api.script("busy", *looks, a_turn("Done.")), mcp_servers=["watched"])
    for number in range(2):
        processes.work(f"worker-{number}")
    runs = [api.start_run("busy") for _ in range(20)]
    for _ in range(4):
        postgres_databases.end_sessions()
        time.sleep(0.7)
    for run_id in runs:
        until(partial(is_completed, api, run_id), 120, what=f"the end of {run_id}")
        ended = api.wait(run_id)
        assert_consistent(ended["messages"], api.events(run_id))


@pytest.mark.requirement("E1", "E6")
def test_a_stream_of_a_run_elsewhere_is_cut_and_resumed_on_another_process(processes: Cluster) -> None:
    gate = processes.folder / "gate"
    first, second = processes.serve("api-1", "--no-worker"), processes.serve("api-2", "--no-worker")
    looking(first, gate)
    processes.work("worker")
    run_id = first.start_run("looker")
    seen: list[Json] = []
    with stream(first, "GET", f"/runs/{run_id}/stream") as events:
        for event in events:
            seen.append(event)
            if event["event"] == "tool.started":
                break
    last = max(event["id"] for event in seen if event["id"] is not None)
    with stream(second, "GET", f"/runs/{run_id}/stream", after=last) as events:
        gate.touch()
        seen += list(events)
    numbered = [event["id"] for event in seen if event["id"] is not None]
    stored = second.events(run_id)
    assert numbered == [event["seq"] for event in stored]
    assert stored[-1]["type"] == "run.completed"


@pytest.mark.requirement("E6")
def test_a_run_is_cancelled_from_a_process_that_does_not_execute_it(processes: Cluster) -> None:
    first, second = processes.serve("api-1", "--no-worker"), processes.serve("api-2", "--no-worker")
    log = looking(first, processes.folder / "never")
    processes.work("worker")
    run_id = first.start_run("looker")
    until(lambda: calls_in(log) == 1, what="the held call")
    second.call("POST", f"/runs/{run_id}/cancel")
    ended = first.wait(run_id)
    assert ended["run"]["status"] == "cancelled"
    assert_consistent(ended["messages"], first.events(run_id))


@pytest.mark.requirement("C3", "E6")
def test_a_call_is_approved_on_another_process_than_the_one_that_asked(processes: Cluster) -> None:
    first, second = processes.serve("api-1", "--no-worker"), processes.serve("api-2", "--no-worker")
    log = first.watched_server("watched")
    model = first.script("asking", a_turn("I ask.", (LOOK, {"text": "around"})), a_turn("Done."))
    policies = {LOOK: {"decision": "require_approval"}}
    first.agent("asker", model, mcp_servers=["watched"], tool_policies=policies)
    processes.work("worker")
    run_id = first.start_run("asker")
    until(lambda: status_of(first, run_id) == "requires_action", what="the question")
    [approval] = second.call("GET", "/approvals?state=pending")["data"]
    assert calls_in(log) == 0
    second.call("POST", f"/approvals/{approval['id']}", {"decision": "approve"})
    ended = first.wait(run_id)
    assert ended["run"]["status"] == "completed"
    assert results_by_tool(ended["messages"])[LOOK]["result"] == "look says around"


def until_true_of_what_began_a_second_later(since: float, holds: Callable[[], bool]) -> None:
    """Usually the first look shows it; what was begun a second after `since` must."""
    while True:
        began = time.monotonic()
        if holds():
            return
        assert began - since <= 1.0, "a process answered from memory that was more than a second old"


@pytest.mark.requirement("C1", "C6", "E6")
def test_what_one_process_changes_holds_in_the_others_within_a_second(processes: Cluster) -> None:
    first, second = processes.serve("api-1", "--no-worker"), processes.serve("api-2", "--no-worker")
    processes.work("worker")
    before, after = first.script("before", a_turn("before")), first.script("after", a_turn("after"))
    agent = first.agent("talker", before)
    assert second.run("talker")["run"]["output"] == "before"
    key = first.call("POST", "/api-keys", {"name": "short-lived", "role": "viewer"})
    bearer = {"Authorization": f"Bearer {key['token']}"}
    assert second.client.get("/agents", headers=bearer).status_code == 200
    assert first.client.delete(f"/api-keys/{key['id']}").is_success
    revoked = time.monotonic()
    until_true_of_what_began_a_second_later(
        revoked, lambda: second.client.get("/agents", headers=bearer).status_code == 401
    )
    first.call("PATCH", f"/agents/{agent['id']}", {"model": after})
    changed = time.monotonic()
    assert second.call("GET", f"/agents/{agent['id']}")["model"] == after, "who looks at an agent reads it"
    until_true_of_what_began_a_second_later(changed, lambda: second.run("talker")["run"]["output"] == "after")


@pytest.mark.requirement("B12", "C7", "E6")
def test_a_service_shows_and_ends_the_connections_that_a_worker_holds(processes: Cluster) -> None:
    api = processes.serve("api", "--no-worker")
    api.call("POST", "/secrets", {"name": "TOKEN", "value": "first"})
    api.watched_server(
        "watched", trusted=True, isolation="shared", env={"TOKEN": {"secret": "TOKEN"}}, idle_timeout_s=3600
    )
    api.agent(
        "looker",
        api.script("looking", a_turn("I look.", (LOOK, {"text": "x"})), a_turn("Done.")),
        mcp_servers=["watched"],
    )
    worker = processes.work("worker")

    def status() -> Json:
        return api.call("GET", "/mcp-servers/watched/status")

    def tokens() -> set[str]:
        given = [environment_of(server.pid).splitlines() for server in descendants(worker.process.pid)]
        return {line for lines in given for line in lines if line.startswith("TOKEN=")}

    assert api.run("looker")["run"]["status"] == "completed"
    until(lambda: status()["state"] == "connected" and status()["processes"], what="the worker's report")
    [report] = status()["processes"]
    assert report["name"].endswith(f":{worker.process.pid}")
    assert tokens() == {"TOKEN=first"}
    api.call("POST", "/secrets", {"name": "TOKEN", "value": "second"})
    until(lambda: status()["state"] == "disconnected", what="the end of the worker's connection")
    assert api.run("looker")["run"]["status"] == "completed"
    # The process that had the first may take a moment to end.
    until(lambda: tokens() == {"TOKEN=second"}, what="one process, with the second")
    until(lambda: status()["state"] == "connected", what="the new connection")
    api.call("POST", "/mcp-servers/watched/disconnect")
    until(lambda: not status()["processes"], what="the end of that")
    worker.kill()


@pytest.mark.requirement("E6")
def test_two_services_that_start_on_an_empty_database_agree_who_was_first(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with postgres_databases.empty() as url, cluster(url, tmp_path) as processes, processes.running:
        upgrading = [
            subprocess.Popen(
                [*DRAGOMAN, "db", "upgrade", "--json"],
                env=environment(tmp_path / f"home-{number}", **processes.settings),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for number in range(2)
        ]
        answers = [process.communicate(timeout=START_S) for process in upgrading]
        assert [process.returncode for process in upgrading] == [0, 0], answers
        assert sorted(json.loads(out)["upgraded"] for out, _ in answers) == [False, True]
        first = processes.serve("api-1", "--no-worker")
        second = processes.serve("api-2", "--no-worker")
        assert second.call("GET", "/organization") == first.call("GET", "/organization")
        assert not (second.home / "admin.key.draft").exists()


@pytest.mark.requirement("E6")
def test_a_worker_beside_an_sqlite_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    refused = subprocess.run(
        [*DRAGOMAN, "worker"],
        env=environment(tmp_path / "home"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert "PostgreSQL" in line
    assert "DRAGOMAN_DATABASE_URL" in line
    assert not (tmp_path / "home").exists()


@pytest.mark.requirement("E6")
def test_the_database_is_upgraded_by_a_command_of_its_own(tmp_path: Path) -> None:
    def upgrade(*arguments: str) -> str:
        done = subprocess.run(
            [*DRAGOMAN, "db", "upgrade", *arguments],
            env=environment(tmp_path / "home"),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert upgrade() == "The database was upgraded.\n"
    assert json.loads(upgrade("--json")) == {"upgraded": False}
