"""Runs and the end of the process that executes them: killed in the middle, or asked to stop."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, assert_consistent, parts, results_by_tool, serving

STOP_BOUND_S = 45.0
"""Draining, letting go and closing connections take 18 s at their worst, and a busy machine more;
the runs that are not waited for take minutes."""


def three_calls(service: Service, gate: Path, slug: str = "watched") -> str:
    """One turn: a call that finishes at once, one that only reads and one that changes something,
    both held."""
    return service.script(
        "three",
        a_turn(
            "Three at a time.",
            (f"mcp__{slug}__note", {"text": "first"}),
            (f"mcp__{slug}__held_look", {"text": "second", "gate": str(gate)}),
            (f"mcp__{slug}__held_note", {"text": "third", "gate": str(gate)}),
        ),
        a_turn("All three are answered."),
    )


def settled(service: Service, run_id: str) -> list[str]:
    return [event["name"] for event in service.events(run_id) if event["type"] == "tool.executed"]


def until_two_are_held(service: Service, log: Path, run_id: str) -> None:
    until(lambda: settled(service, run_id) == ["mcp__watched__note"], what="the settled call")
    until(lambda: {"called held_look second", "called held_note third"} <= set(log.read_text().splitlines()))


@pytest.mark.requirement("E2", "E3", "E4", "E6", "E7")
def test_a_run_whose_service_is_killed_goes_on_and_repeats_only_what_may_be_repeated(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        service.agent("worker", three_calls(service, gate), mcp_servers=["watched"])
        run_id = service.start_run("worker")
        until_two_are_held(service, log, run_id)
        before = service.events(run_id)
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    gate.touch()
    with serving(home) as again:
        ended = again.wait(run_id)
        assert ended["run"]["status"] == "completed"
        assert ended["run"]["attempt"] == 2
        events = again.events(run_id)
        assert events[: len(before)] == before
        assert_consistent(ended["messages"], events)
        called = [line for line in log.read_text().splitlines() if line.startswith("called")]
        assert sorted(called) == [
            "called held_look second",
            "called held_look second",
            "called held_note third",
            "called note first",
        ]
        results = results_by_tool(ended["messages"])
        assert results["mcp__watched__note"] | {"is_error": False} == results["mcp__watched__note"]
        assert results["mcp__watched__held_look"]["result"] == "held_look says second"
        assert "outcome of this call is unknown" in results["mcp__watched__held_note"]["result"]
        assert results["mcp__watched__held_note"]["is_error"]


@pytest.mark.requirement("E3")
def test_hints_of_a_server_that_is_not_trusted_are_not_believed_after_a_crash(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=False)
        service.agent("worker", three_calls(service, gate), mcp_servers=["watched"])
        run_id = service.start_run("worker")
        until_two_are_held(service, log, run_id)
        service.stop(signal.SIGKILL)
    gate.touch()
    with serving(home) as again:
        ended = again.wait(run_id)
        assert ended["run"]["status"] == "completed"
        assert "unknown" in results_by_tool(ended["messages"])["mcp__watched__held_look"]["result"]
        assert log.read_text().count("called held_look") == 1


@pytest.mark.requirement("E2", "E4")
def test_a_service_killed_while_the_model_talks_lets_it_start_that_reply_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    text = "".join(f"{number} " for number in range(100))
    with serving(home) as service:
        service.agent("counter", service.script("count", a_turn(text), delay_ms=40, chunk_chars=6))
        run_id = service.start_run("counter")
        until(lambda: any(event["type"] == "message.delta" for event in service.events(run_id)), what="the first words")
        service.stop(signal.SIGKILL)
    with serving(home) as again:
        ended = again.wait(run_id)
        assert ended["run"]["status"] == "completed"
        assert ended["run"]["output"] == text.strip() or ended["run"]["output"] == text
        assert len(parts([m for m in ended["messages"] if m["role"] == "assistant"], "text")) == 1
        events = again.events(run_id)
        assert_consistent(ended["messages"], events)
        assert what_a_listener_has(events)[ended["messages"][-1]["id"]] == text


def what_a_listener_has(events: list[Json]) -> dict[str, str]:
    """The text of each message put together from its pieces, without those that were discarded."""
    heard: dict[str, str] = {}
    for event in events:
        if event["type"] == "message.delta":
            heard[event["message_id"]] = heard.get(event["message_id"], "") + event["text"]
        elif event["type"] == "message.discarded":
            heard.pop(event["message_id"], None)
    return heard


@pytest.mark.requirement("E7")
def test_a_stop_hands_the_run_back_and_the_next_start_completes_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    text = "".join(f"{number} " for number in range(100))
    with serving(home) as service:
        # Longer than a stop waits.
        service.agent("counter", service.script("count", a_turn(text), delay_ms=2000, chunk_chars=3))
        run_id = service.start_run("counter")
        until(lambda: any(event["type"] == "message.delta" for event in service.events(run_id)), what="the first words")
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < STOP_BOUND_S
        assert "Traceback" not in service.log.read_text()
    (home / "scripted" / "count.yaml").write_text('{"turns": [{"text": "Done after all."}]}')
    with serving(home) as again:
        ended = again.wait(run_id)
        assert ended["run"]["status"] == "completed"
        assert ended["run"]["output"] == "Done after all."
        events = again.events(run_id)
        assert_consistent(ended["messages"], events)
        assert what_a_listener_has(events) == {ended["messages"][-1]["id"]: "Done after all."}


@pytest.mark.requirement("E7")
def test_a_stop_lets_the_call_in_hand_finish_and_ends_open_streams(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched")
        model = service.script(
            "hold", a_turn("", ("mcp__watched__held_note", {"text": "kept", "gate": str(gate)})), a_turn("Done.")
        )
        service.agent("holder", model, mcp_servers=["watched"])
        run_id = service.start_run("holder")
        with service.client.stream("GET", f"/runs/{run_id}/stream") as response:
            assert response.status_code == 200
            until(lambda: log.exists() and "called held_note" in log.read_text(), what="the call")
            service.process.terminate()
            gate.touch()
            assert service.process.wait(timeout=STOP_BOUND_S) == 0
    with serving(home) as again:
        ended = again.wait(run_id)
        assert ended["run"]["status"] == "completed"
        assert results_by_tool(ended["messages"])["mcp__watched__held_note"]["result"] == "held_note says kept"
        assert log.read_text().count("called held_note") == 1


@pytest.mark.requirement("E7")
def test_a_client_that_waits_when_the_service_stops_learns_which_run_to_wait_for(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service, ThreadPoolExecutor() as threads:
        log = service.watched_server("watched", trusted=True)
        script = service.script(
            "held", a_turn("", ("mcp__watched__held_look", {"text": "x", "gate": str(gate)})), a_turn("Over.")
        )
        service.agent("holder", script, mcp_servers=["watched"])
        asking = threads.submit(service.client.post, "/runs/wait", json={"agent": "holder", "input": "Go."})
        until(lambda: log.exists() and "called held_look" in log.read_text(), what="the call")
        service.process.terminate()
        response = asking.result()
        gate.touch()
        assert service.process.wait(timeout=STOP_BOUND_S) == 0
        assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
        problem = response.json()
        assert problem["code"] == "service_stopping"
        assert "Exception in ASGI application" not in service.log.read_text()
    with serving(home) as again:
        assert again.wait(problem["run_id"])["run"]["status"] == "completed"
        assert len(again.call("GET", "/runs")["data"]) == 1
