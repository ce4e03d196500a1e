"""A server of the official SDK that asks for input in the middle of a call: the run waits, over a
restart if need be."""

import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.service import ROOT, Json, Service, a_turn, assert_consistent, results_by_tool, serving

ASKING_SERVER = ROOT / "tests" / "integration" / "mcp" / "servers" / "asking_server.py"


def a_painter(service: Service, **settings: object) -> None:
    service.server("painter", sys.executable, str(ASKING_SERVER), **settings)
    model = service.script("paint", a_turn("", ("mcp__painter__paint", {"thing": "door"})), a_turn("Painted."))
    service.agent("decorator", model, mcp_servers=["painter"])


def answering(run: Json, result: Json) -> Json:
    return {"tool_results": [{"tool_call_id": run["pending"][0]["id"], "result": result}]}


@pytest.mark.requirement("B4", "E3", "E6")
@pytest.mark.parametrize("between", ["nothing", "stopped", "killed"])
def test_a_run_waits_for_the_answer_to_what_a_server_asks(tmp_path: Path, between: str) -> None:
    home = tmp_path / "home"
    red = {"action": "accept", "content": {"colour": "red"}}
    with serving(home) as service:
        a_painter(service, elicitation="ask")
        waiting = service.run("decorator")["run"]
        assert waiting["status"] == "requires_action"
        assert waiting["pending"][0]["elicitation"]["message"] == "Which colour for the door?"
        resume = f"/runs/{waiting['id']}/resume"
        service.call("POST", resume, answering(waiting, {"action": "accept", "content": {}}), expect=422)
        if between == "nothing":
            service.call("POST", resume, answering(waiting, red))
            told = (service.wait(waiting["id"]), service.events(waiting["id"]))
        else:
            told = None
            service.stop(signal.SIGTERM if between == "stopped" else signal.SIGKILL)
    if told is None:
        # The server's process is another one now, and does not know its own note any more.
        with serving(home) as again:
            assert again.call("GET", f"/runs/{waiting['id']}") == waiting
            again.call("POST", resume, answering(waiting, red))
            told = (again.wait(waiting["id"]), again.events(waiting["id"]))
    ended, events = told
    assert (ended["run"]["status"], ended["run"]["output"]) == ("completed", "Painted.")
    assert results_by_tool(ended["messages"])["mcp__painter__paint"]["result"] == "door: red"
    assert [event["type"] for event in events].count("run.requires_action") == 1
    assert_consistent(ended["messages"], events)


@pytest.mark.requirement("B4")
def test_a_server_without_that_policy_is_declined_and_the_run_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        a_painter(service)
        ended = service.run("decorator")
        assert ended["run"]["status"] == "completed"
        assert results_by_tool(ended["messages"])["mcp__painter__paint"]["is_error"]
