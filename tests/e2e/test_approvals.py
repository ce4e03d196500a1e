"""A call that waits for a person, while the service is killed and started again."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import until
from tests.e2e.service import DRAGOMAN, Json, Service, a_turn, assert_consistent, environment, results_by_tool, serving

NOTE = "mcp__watched__note"
LOOK = "mcp__watched__look"


def prepared(service: Service, *, texts: tuple[str, ...] = ("first",), **rule: object) -> tuple[Path, str]:
    """A server, and an agent that takes notes after approval and looks without; its server's log
    and a run that waits."""
    log = service.watched_server("watched")
    notes = [(NOTE, {"text": text}) for text in texts]
    model = service.script(
        "noting",
        a_turn("I ask first.", *notes, (LOOK, {"text": "around"})),
        a_turn("The server said: {{ results.mcp__watched__note }}"),
    )
    policies = {NOTE: {"decision": "require_approval", **rule}}
    service.agent("noting", model, mcp_servers=["watched"], tool_policies=policies)
    run_id = service.start_run("noting")
    # A wait of a second may be over before a busy machine looks.
    until(lambda: status_of(service, run_id) in {"requires_action", "completed"}, what="the wait")
    return log, run_id


def status_of(service: Service, run_id: str) -> str:
    return str(service.call("GET", f"/runs/{run_id}")["status"])


def pending_of(service: Service) -> list[Json]:
    approvals: list[Json] = service.call("GET", "/approvals?state=pending")["data"]
    return approvals


def calls_in(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith("called")]


def actions_of(service: Service, run_id: str) -> list[str]:
    return [entry["action"] for entry in service.call("GET", f"/audit-events?run_id={run_id}")["data"]]


@pytest.mark.requirement("C3", "E3", "E7")
def test_a_run_that_waits_survives_kills_and_the_model_gets_the_real_result(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        log, run_id = prepared(service)
        service.stop(signal.SIGKILL)
    with serving(home) as again:
        assert status_of(again, run_id) == "requires_action"
        [approval] = pending_of(again)
        assert (approval["tool"], approval["arguments"], approval["run_id"]) == (NOTE, {"text": "first"}, run_id)
        assert calls_in(log) == ["called look around"], "its sibling ran, and nothing was noted"
        again.stop(signal.SIGKILL)
    with serving(home) as third:
        decided = third.call("POST", f"/approvals/{approval['id']}", {"decision": "approve"})
        assert decided["state"] == "approved"
        ended = third.wait(run_id)
        assert ended["run"]["status"] == "completed"
        assert ended["run"]["output"] == "The server said: note says first"
        assert results_by_tool(ended["messages"])[NOTE]["result"] == "note says first"
        assert calls_in(log) == ["called look around", "called note first"]
        assert_consistent(ended["messages"], third.events(run_id))
        assert {"tool.approved", "tool.executed"} <= set(actions_of(third, run_id))
        third.call("POST", f"/approvals/{approval['id']}", {"decision": "deny"}, expect=409)


@pytest.mark.requirement("C3", "E7")
def test_an_approval_that_expires_while_no_service_runs_is_a_denial_after_the_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        log, run_id = prepared(service, approval_ttl_s=4)
        service.stop(signal.SIGKILL)
    time.sleep(4)
    with serving(home) as again:
        until(lambda: status_of(again, run_id) == "completed", what="the expiry")
        ended = again.wait(run_id)
        assert "was not given in time" in results_by_tool(ended["messages"])[NOTE]["result"]
        assert calls_in(log) == ["called look around"]
        blocked = [event for event in again.events(run_id) if event["type"] == "tool.blocked"]
        assert [event["reason"] for event in blocked] == ["approval_expired"]
        assert pending_of(again) == []


@pytest.mark.requirement("C3")
def test_a_timer_ends_the_wait_of_a_running_service(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        _, run_id = prepared(service, approval_ttl_s=1)
        until(lambda: status_of(service, run_id) == "completed", what="the expiry")
        assert "tool.denied" in actions_of(service, run_id)


@pytest.mark.requirement("C3")
def test_an_approval_survives_the_restart_between_the_decision_and_the_call(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        log, run_id = prepared(service)
    # Without a worker the decision is taken and nothing is executed.
    with serving(home, "--no-worker") as idle:
        [approval] = pending_of(idle)
        body = {"decision": "approve", "arguments": {"text": "edited"}}
        idle.call("POST", f"/approvals/{approval['id']}", body)
        assert status_of(idle, run_id) == "queued"
        idle.stop(signal.SIGKILL)
    with serving(home) as again:
        assert again.wait(run_id)["run"]["output"] == "The server said: note says edited"
        assert calls_in(log) == ["called look around", "called note edited"]


def dragoman(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*DRAGOMAN, *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.requirement("C3")
def test_a_person_decides_on_the_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        prepared(service, texts=("first", "second"))
        first, second = sorted(pending_of(service), key=lambda approval: str(approval["arguments"]))
        listing = dragoman(home, "approval", "list", "--state", "pending")
        assert listing.returncode == 0, listing.stderr
        assert first["id"] in listing.stdout
        denied = dragoman(home, "approval", "decide", first["id"], "--deny", "--reason", "Not this one.", "--json")
        assert denied.returncode == 0, denied.stderr
        answer: dict[str, Any] = json.loads(denied.stdout)
        assert answer["state"] == "denied"
        again = dragoman(home, "approval", "decide", first["id"], "--approve")
        assert (again.returncode, len(again.stderr.splitlines())) == (1, 1)
        resumed = dragoman(home, "run", "resume", second["run_id"], "--approve", second["tool_call_id"])
        assert resumed.returncode == 0, resumed.stderr
        assert "note says second" in resumed.stdout
        waiting = dragoman(home, "run", "Go.", "--agent", "noting")
        assert waiting.returncode == 3
        assert "approval decide apr_" in waiting.stderr
