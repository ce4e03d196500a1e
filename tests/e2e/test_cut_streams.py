"""Event streams that are cut at every event and taken up again: nothing is missing, nothing comes
twice."""

import signal
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import Cluster, cluster
from tests.e2e.processes import until
from tests.e2e.service import TERMINAL, Json, Service, a_turn, serving
from tests.e2e.streams import stream

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("E1", "E2")]

HELD = "mcp__watched__held_look"
TALK = "".join(f"{number} " for number in range(60))
KINDS = {
    "run.queued",
    "run.started",
    "turn.started",
    "message.delta",
    "message.completed",
    "tool.started",
    "tool.executed",
    "run.requires_action",
    "run.resumed",
    "run.completed",
}


@pytest.fixture
def processes(tmp_path: Path, postgres_databases: PostgresDatabases) -> Iterator[Cluster]:
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as prepared:
        yield prepared


def a_story(service: Service, gate: Path) -> Path:
    """An agent `teller` that talks, calls tools, waits for an approval, and for `gate` in its last
    call; its server's log."""
    log = service.watched_server("watched", trusted=True)
    model = service.script(
        "telling",
        a_turn(TALK, ("mcp__watched__look", {"text": "one"}), ("code_execution", {"code": "6 * 7"})),
        a_turn("I ask.", ("mcp__watched__note", {"text": "two"})),
        a_turn("I look again.", (HELD, {"text": "three", "gate": str(gate)})),
        a_turn(TALK),
        delay_ms=20,
        chunk_chars=12,
    )
    asking = {"mcp__watched__note": {"decision": "require_approval"}}
    service.agent("teller", model, tools=["code_execution"], mcp_servers=["watched"], tool_policies=asking)
    return log


def approve(service: Service, run_id: str) -> None:
    pending = service.call("GET", f"/runs/{run_id}")["pending"]
    approvals = [{"tool_call_id": call["id"], "decision": "approve"} for call in pending]
    service.call("POST", f"/runs/{run_id}/resume", {"approvals": approvals})


def last_of(seen: Sequence[Json]) -> int | None:
    return seen[-1]["id"] if seen else None


def one_connection_for_each_event(services: Sequence[Service], run_id: str) -> list[Json]:
    """The story as it happens: after each event the connection is cut, and the next service is
    asked for more."""
    seen: list[Json] = []
    for service in cycle(services):
        with stream(service, "GET", f"/runs/{run_id}/stream", after=last_of(seen)) as frames:
            frame = next(frames)
        if frame["id"] is not None:
            seen.append(frame)
        elif frame["data"]["status"] in TERMINAL:
            return [*seen, frame]
        else:
            assert frame["data"]["status"] == "requires_action"
            assert seen[-1]["event"] == "run.requires_action"
            approve(service, run_id)
    raise AssertionError("there are services")


def the_first(count: int, service: Service, run_id: str) -> list[Json]:
    """So many events; then the connection is cut."""
    with stream(service, "GET", f"/runs/{run_id}/stream") as frames:
        return [next(frames) for _ in range(count)]


def the_rest(service: Service, run_id: str, seen: Sequence[Json]) -> list[Json]:
    with stream(service, "GET", f"/runs/{run_id}/stream", after=last_of(seen)) as frames:
        return list(frames)


def assert_whole(frames: Sequence[Json], stored: Sequence[Json]) -> None:
    """The frames tell what is stored, once each and in order, and then that it is over."""
    *told, end = frames
    assert [frame["data"] for frame in told] == stored
    assert [(frame["id"], frame["event"]) for frame in told] == [(event["seq"], event["type"]) for event in stored]
    assert (end["id"], end["event"], end["data"]["status"]) == (None, "end", "completed")


def assert_whole_wherever_it_is_cut(first: Service, second: Service, run_id: str) -> None:
    stored = first.events(run_id)
    assert {event["type"] for event in stored} >= KINDS
    assert [event["seq"] for event in stored] == list(range(1, len(stored) + 1))
    for count in range(len(stored) + 1):
        seen = the_first(count, first, run_id)
        assert_whole([*seen, *the_rest(second, run_id, seen)], stored)


def test_a_stream_is_cut_after_every_event_and_taken_up_again(service: Service, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    a_story(service, gate)
    run_id = service.start_run("teller")
    frames = one_connection_for_each_event([service], run_id)
    assert_whole(frames, service.events(run_id))
    assert_whole_wherever_it_is_cut(service, service, run_id)


@pytest.mark.requirement("E4", "E7")
def test_streams_that_a_killed_service_cut_are_taken_up_at_the_next_one(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path / "home") as service:
        log = a_story(service, gate)
        run_id = service.start_run("teller")
        until(lambda: service.call("GET", f"/runs/{run_id}")["status"] == "requires_action", what="the question")
        approve(service, run_id)
        until(lambda: "called held_look three" in log.read_text(), what="the held call")
        so_far = service.events(run_id)
        cut = [the_first(count, service, run_id) for count in range(len(so_far) + 1)]
        service.stop(signal.SIGKILL)
    with serving(tmp_path / "home") as again:
        with stream(again, "GET", f"/runs/{run_id}/stream", after=last_of(cut[-1])) as frames:
            gate.touch()
            rest = list(frames)
        stored = again.events(run_id)
        assert stored[: len(so_far)] == so_far
        assert [event["type"] for event in stored].count("run.started") == 3, "begun, resumed, recovered"
        assert_whole([*cut[-1], *rest], stored)
        for seen in cut:
            assert_whole([*seen, *the_rest(again, run_id, seen)], stored)


@pytest.mark.requirement("E6")
def test_a_stream_is_cut_after_every_event_and_taken_up_on_another_process(processes: Cluster) -> None:
    gate = processes.folder / "gate"
    gate.touch()
    first, second = processes.serve("api-1", "--no-worker"), processes.serve("api-2", "--no-worker")
    a_story(first, gate)
    processes.work("worker")
    run_id = first.start_run("teller")
    frames = one_connection_for_each_event([first, second], run_id)
    assert_whole(frames, second.events(run_id))
    assert_whole_wherever_it_is_cut(first, second, run_id)
