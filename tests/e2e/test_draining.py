"""`dragoman drain`: a service or worker finishes its runs, takes no more, and stops; others have
what is left."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import DRAGOMAN, ROOT, STOP_S, Service, a_turn, environment, serving

pytestmark = pytest.mark.requirement("K7")


def draining(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*DRAGOMAN, "drain", *arguments],
        env=environment(home),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = process.communicate(timeout=STOP_S)
    return process.returncode, output


def held_run(service: Service, gate: Path) -> tuple[str, Path]:
    """A run of two turns whose first call is held until there is a gate, and the log of its
    server."""
    log = service.watched_server("watched", trusted=True)
    note = ("mcp__watched__held_note", {"text": "once", "gate": str(gate)})
    service.agent("holder", service.script("held", a_turn("I hold.", note), a_turn("Done.")), mcp_servers=["watched"])
    run_id = service.start_run("holder")
    until(lambda: log.exists() and "called held_note once" in log.read_text(), what="the held call")
    return run_id, log


def test_a_drained_worker_finishes_its_run_and_another_one_has_what_comes_after(
    postgres_databases: PostgresDatabases, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as processes, processes.running:
        service = processes.serve("service", "--no-worker")
        old = processes.work("old")
        run_id, log = held_run(service, gate)
        drain = draining(tmp_path / "old", str(old.process.pid))
        until(lambda: "draining" in old.log.read_text(), what="the worker to drain")
        processes.work("new")
        later = service.start_run("holder", "And this.")
        until(lambda: log.read_text().count("called held_note once") == 2, what="the call of the new worker")
        assert old.process.poll() is None
        gate.touch()
        assert said(drain) == (0, f"{old.process.pid}: finished its runs.\n")
        assert old.process.wait(timeout=STOP_S) == 0
        for ended in (service.wait(run_id), service.wait(later)):
            assert (ended["run"]["status"], ended["run"]["attempt"]) == ("completed", 1)
        assert log.read_text().count("called held_note once") == 2


def test_a_drained_service_is_not_ready_answers_until_its_runs_end_and_stops(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path / "home") as service:
        run_id, _ = held_run(service, gate)
        drain = draining(service.home)
        until(
            lambda: httpx.get(f"{service.url}/health/ready", timeout=60).status_code == 503, what="the service to drain"
        )
        waiting = service.start_run("holder", "Later.")
        assert service.call("GET", f"/runs/{run_id}")["status"] == "in_progress"
        gate.touch()
        assert said(drain) == (0, f"{service.process.pid}: finished its runs.\n")
        assert service.process.wait(timeout=STOP_S) == 0
    with serving(tmp_path / "home") as again:
        first, second = again.wait(run_id)["run"], again.wait(waiting)["run"]
        assert [(run["status"], run["attempt"]) for run in (first, second)] == [("completed", 1), ("completed", 1)]


def test_a_run_that_takes_longer_than_it_may_is_handed_over(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path / "home") as service:
        run_id, log = held_run(service, gate)
        assert said(draining(service.home, "--within", "0")) == (
            0,
            f"{service.process.pid}: was stopped after 0 s; what had not ended by then is handed over.\n",
        )
        assert service.process.wait(timeout=STOP_S) == 0
    gate.touch()
    with serving(tmp_path / "home") as again:
        assert again.wait(run_id)["run"]["status"] == "completed"
    assert log.read_text().count("called held_note once") == 1


def test_the_service_of_the_home_is_drained_whatever_its_program_is_called(tmp_path: Path) -> None:
    act = "import signal; signal.signal(signal.SIGUSR1, lambda *_: exit())"
    command = [sys.executable, "-c", f"{act}; print('ready', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        (tmp_path / "serve.json").write_text(json.dumps({"url": "http://127.0.0.1:9", "pid": other.pid}))
        assert said(draining(tmp_path)) == (0, f"{other.pid}: finished its runs.\n")


@pytest.mark.parametrize(
    "act", ["pass", "import signal; signal.signal(signal.SIGUSR1, print)"], ids=["plain", "handles"]
)
def test_other_programs_are_not_drained(act: str, tmp_path: Path) -> None:
    program = f"{act}; print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        code, output = said(draining(tmp_path, str(other.pid), "--within", "0"))
        assert code == 1
        assert "no service or worker" in output
        assert other.poll() is None
        other.kill()
    code, output = said(draining(tmp_path))
    assert code == 2
    assert "No service runs" in output
