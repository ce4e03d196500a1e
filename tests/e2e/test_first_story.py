"""What a new user does over HTTP: register and test a server, create an agent, run it in three
ways, cut, cancel, audit."""

import itertools
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import descendants, living, until
from tests.e2e.service import Json, Service, a_turn, assert_consistent, parts, results_by_tool, serving
from tests.e2e.streams import stream

TIME_SERVER = (sys.executable, "-m", "mcp_server_time")
CONVERT = {"source_timezone": "Asia/Tokyo", "time": "12:30", "target_timezone": "Asia/Kolkata"}
EVERYTHING = Path(__file__).parents[1] / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"


def a_talkative_model(service: Service) -> str:
    """Text in many pieces around two calls of different kinds in one turn."""
    return service.script(
        "talk",
        a_turn(
            "I look at the clock and calculate, side by side, and say so at length.",
            ("mcp__clock__convert_time", CONVERT),
            ("code_execution", {"code": "6 * 7"}),
        ),
        a_turn("Now the result was {{ results.code_execution /result }} and I am done with all of it."),
        chunk_chars=4,
        delay_ms=2,
    )


@pytest.mark.requirement("A2", "A4", "B3", "B4", "C5", "E1", "E2")
def test_a_new_user_registers_tests_runs_and_audits_and_finds_it_all_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        service.server("clock", *TIME_SERVER, isolation="thread")
        tested = service.call("POST", "/mcp-servers/clock/test")
        assert tested["ok"], tested
        assert tested["protocol_version"] == "2026-07-28"
        assert {tool["name"] for tool in tested["tools"]} == {"get_current_time", "convert_time"}
        model = a_talkative_model(service)
        agent = service.agent("talker", model, tools=["code_execution"], mcp_servers=["clock"])

        waited = service.run("talker")
        assert waited["run"]["status"] == "completed"
        assert waited["run"]["agent_id"] == agent["id"]
        assert waited["run"]["usage"]["tool_calls"] == 2
        results = results_by_tool(waited["messages"])
        assert "09:00" in results["mcp__clock__convert_time"]["result"]
        assert "42" in waited["run"]["output"]

        with stream(service, "POST", "/runs/stream", body={"agent": "talker", "input": "Go."}) as frames:
            streamed = list(frames)
        assert [frame["id"] for frame in streamed] == [*range(1, len(streamed)), None]
        assert streamed[-1] == {"id": None, "event": "end", "data": {"type": "end", "status": "completed"}}
        text = "".join(frame["data"]["text"] for frame in streamed if frame["event"] == "message.delta")
        assert text.endswith("the result was 42 and I am done with all of it.")

        background = service.start_run("talker")
        ended = service.wait(background)
        assert_consistent(ended["messages"], service.events(background))

        run_ids = [waited["run"]["id"], streamed[0]["data"]["run_id"], background]
        audit = service.call("GET", f"/audit-events?run_id={background}")["data"]
        assert {"run.started", "run.completed", "tool.executed"} <= {entry["action"] for entry in audit}
        before = {run_id: (service.call("GET", f"/runs/{run_id}"), service.events(run_id)) for run_id in run_ids}
        all_audit = service.call("GET", "/audit-events?limit=100")
        assert service.stop() == 0
        # Whoever copies the file of a stopped service has everything.
        assert not (home / "dragoman.db-wal").exists()

    with serving(home) as again:
        assert {run_id: (again.call("GET", f"/runs/{run_id}"), again.events(run_id)) for run_id in run_ids} == before
        assert again.call("GET", "/audit-events?limit=100") == all_audit
        assert {**again.call("GET", "/agents/talker"), "warnings": []} == agent
        thread = before[background][0]["thread_id"]
        messages = again.call("GET", f"/threads/{thread}/messages")["data"]
        assert parts(messages, "tool_result") == parts(ended["messages"], "tool_result")
        continued = again.call("POST", f"/threads/{thread}/runs/wait", {"agent": "talker", "input": "Once more."})
        assert continued["run"]["status"] == "completed"


@pytest.mark.requirement("E1", "E2")
def test_a_stream_cut_anywhere_is_taken_up_with_no_event_missing_or_doubled(service: Service) -> None:
    service.server("clock", *TIME_SERVER, isolation="shared")
    service.agent("talker", a_talkative_model(service), tools=["code_execution"], mcp_servers=["clock"])
    whole = [event["seq"] for event in service.events(service.run("talker")["run"]["id"])]
    for cut_after in (1, 2, 5, len(whole) // 2, len(whole) - 1):
        with stream(service, "POST", "/runs/stream", body={"agent": "talker", "input": "Go."}) as frames:
            seen: list[Json] = list(itertools.islice(frames, cut_after))
        run_id = seen[0]["data"]["run_id"]
        # Cut again and again, a few events further each time, until the end is there.
        while seen[-1]["event"] != "end":
            with stream(service, "GET", f"/runs/{run_id}/stream", after=seen[-1]["id"]) as frames:
                seen += itertools.islice(frames, 7)
        stored = service.events(run_id)
        assert [frame["data"] for frame in seen[:-1]] == stored
        assert_consistent(service.wait(run_id)["messages"], stored)


@pytest.mark.requirement("A12", "B4")
def test_cancelling_reaches_the_tool_server_and_leaves_a_consistent_transcript(service: Service) -> None:
    log = service.watched_server("watched")
    gate = service.home / "never"
    model = service.script("hold", a_turn("", ("mcp__watched__held_note", {"gate": str(gate)})), a_turn("Done."))
    service.agent("holder", model, mcp_servers=["watched"])
    run_id = service.start_run("holder")
    until(lambda: log.exists() and "called held_note" in log.read_text(), what="the call")
    below = descendants(service.process.pid)
    assert service.call("POST", f"/runs/{run_id}/cancel")["id"] == run_id
    ended = service.wait(run_id, timeout_s=60)
    assert ended["run"]["status"] == "cancelled"
    until(lambda: "cancelled held_note" in log.read_text(), what="the cancellation at the server")
    assert "finished" not in log.read_text()
    assert_consistent(ended["messages"], service.events(run_id))
    until(lambda: not below & living().keys(), what="the end of the run's server")


@pytest.mark.requirement("A12")
def test_cancelling_stops_a_model_that_is_still_talking(service: Service) -> None:
    model = service.script("drone", a_turn("word " * 400), delay_ms=100, chunk_chars=5)
    service.agent("drone", model)
    with stream(service, "POST", "/runs/stream", body={"agent": "drone", "input": "Talk."}) as frames:
        first = next(frame for frame in frames if frame["event"] == "message.delta")
        run_id = first["data"]["run_id"]
        service.call("POST", f"/runs/{run_id}/cancel")
        rest = list(frames)
    assert [frame["event"] for frame in rest[-2:]] == ["run.cancelled", "end"]
    assert service.wait(run_id)["run"]["status"] == "cancelled"
    # A second cancellation changes nothing.
    count = len(service.events(run_id))
    assert service.call("POST", f"/runs/{run_id}/cancel")["status"] == "cancelled"
    assert len(service.events(run_id)) == count


@pytest.mark.requirement("B3", "B4")
@pytest.mark.skipif(not EVERYTHING.exists(), reason="needs `make node`")
def test_an_npm_server_of_the_older_generation_takes_part_in_a_run(service: Service) -> None:
    service.server("everything", "node", str(EVERYTHING), "stdio")
    tested = service.call("POST", "/mcp-servers/everything/test")
    assert tested["ok"], tested
    assert tested["protocol_version"] < "2026"
    model = service.script(
        "sum", a_turn("", ("mcp__everything__get-sum", {"a": 19, "b": 23})), a_turn("{{ results.last }}")
    )
    service.agent("adder", model, mcp_servers=["everything"])
    answer = service.run("adder")
    assert answer["run"]["status"] == "completed"
    assert "42" in answer["run"]["output"]


@pytest.mark.requirement("E7")
def test_an_interrupt_from_the_keyboard_stops_the_service_like_a_termination(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        assert service.stop(signal.SIGINT) == 0
        assert "a second signal stops at once" in service.log.read_text()
        assert "Traceback" not in service.log.read_text()
        assert not (service.home / "serve.json").exists()
