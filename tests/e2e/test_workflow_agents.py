"""Agents that are tools of agents of a workflow, in a real service with one place for runs: called,
killed in the middle, cancelled, and held to the policies of their callers."""

import json
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, results_by_tool, serving
from tests.e2e.test_workflow_tools import by_id, component, messages_of
from tests.e2e.test_workflows import SECRET, Weather, settled, weather

ONE_PLACE = {"DRAGOMAN_WORKER_CONCURRENCY": "1"}
ASKED = ("agent__scout", {"input": "What is the weather in Ulm?"})
ANSWER = "Ulm has a clear sky."


def story(url: str) -> Json:
    """`lead` has the agent `scout` as its only tool, and `scout` the weather."""
    return {
        "name": "desk",
        "nodes": [
            {"id": "start", "kind": "entrypoint"},
            {"id": "weather", "kind": "http_request", "mode": "tool", "config": component(url, "weather", "city")},
            {"id": "scout", "kind": "agent", "mode": "tool", "config": {"agent": "scout", "description": "Asks."}},
            {"id": "lead", "kind": "agent", "config": {"agent": "lead", "input": "Report."}},
        ],
        "edges": [
            {"source": "start", "target": "lead"},
            {"source": "weather", "target": "scout", "target_handle": "tools"},
            {"source": "scout", "target": "lead", "target_handle": "tools"},
        ],
    }


def prepared(service: Service, url: str, *, calls: Sequence[tuple[str, Json]] = (ASKED,), **lead: object) -> None:
    service.call("POST", "/secrets", {"name": "WEATHER", "value": SECRET})
    looks = (("weather", {"city": "Ulm"}), ("code_execution", {"code": "1"}))
    service.agent("scout", service.script("scout", a_turn("I look.", *looks), a_turn(ANSWER)), tools=["code_execution"])
    service.agent("lead", service.script("lead", a_turn("I ask.", *calls), a_turn("All is said.")), **lead)
    saved = service.call("POST", "/workflows", story(url))
    assert saved["warnings"] == []


def begun(service: Service) -> str:
    return str(service.call("POST", "/workflows/desk/runs", {}, expect=202)["id"])


def called_runs(service: Service) -> list[Json]:
    """The runs that were started by calls of an agent."""
    return [run for run in service.call("GET", "/runs")["data"] if "called_by" in run["metadata"]]


def until_asked(server: Weather) -> None:
    until(lambda: server.asked == ["/weather/Ulm"], what="the called agent asks for the weather")


@pytest.mark.requirement("F1", "F3", "F5")
def test_an_agent_calls_the_agent_that_is_wired_to_it_though_it_has_the_only_place_for_runs(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home", **ONE_PLACE) as service:
        prepared(service, server.url)
        service.call("PATCH", "/agents/scout", {"max_queued": 1})
        run = settled(service, begun(service))
        assert (run["status"], run["output"]["text"]) == ("completed", "All is said."), run
        result = results_by_tool(messages_of(service, run, "lead"))["agent__scout"]
        assert (result["is_error"], result["result"]) == (False, ANSWER)
        (called,) = called_runs(service)
        lead = by_id(run)["lead"]["run_id"]
        told = called["metadata"]["called_by"]
        assert (told["run_id"], told["depth"], called["status"]) == (lead, 1, "completed")
        # Exactly what is wired to the agent, without the tools of its own.
        results = results_by_tool(service.call("GET", f"/runs/{called['id']}/wait")["messages"])
        assert "clear" in str(results["weather"]["result"])
        assert "was not found" in str(results["code_execution"]["result"])
        events = service.events(lead)
        progress = [event["message"] for event in events if event["type"] == "tool.progress"]
        assert {"calls weather", "turn 2"}.intersection(progress), progress
        audit = service.call("GET", "/audit-events?limit=200")["data"]
        assert {("tool.executed", "agent__scout", lead), ("tool.executed", "weather", called["id"])} <= {
            (entry["action"], entry["tool"], entry["run_id"]) for entry in audit
        }
        assert called["usage"]["turns"] == 2


@pytest.mark.requirement("F5")
async def test_a_session_of_the_agents_node_calls_it_with_the_tools_of_the_node(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home") as service:
        prepared(service, server.url)
        server.held.clear()
        server.holds = 1  # the call of the workflow: the session ends with its run
        run_id = begun(service)
        until_asked(server)
        body = {"workflow_run_id": run_id, "node_ids": ["scout"]}
        session = service.call("POST", "/gateway-sessions", body, expect=201)
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {session['token']}"}, timeout=60) as http,
            Client(streamable_http_client(session["url"], http_client=http)) as client,
        ):
            assert [tool.name for tool in (await client.list_tools()).tools] == ["agent__scout"]
            answer = await client.call_tool(*ASKED)
        server.held.set()
        assert (answer.is_error, answer.content[0].text) == (False, ANSWER)  # type: ignore[union-attr]  # text
        assert settled(service, run_id)["status"] == "completed"
        assert {"gateway_session_id" in called["metadata"]["called_by"] for called in called_runs(service)} == {
            True,
            False,
        }


@pytest.mark.requirement("F2")
def test_what_no_agent_could_call_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        prepared(service, "http://127.0.0.1:9")

        def faults(definition: Json) -> list[tuple[str, list[str]]]:
            checked = service.call("POST", "/workflows/validate", definition)
            return [(fault["code"], fault["node_ids"]) for fault in checked["errors"]]

        definition = story("http://127.0.0.1:9")
        definition["nodes"][2]["config"]["agent"] = "nobody"
        assert faults(definition) == [("unknown_agent", ["scout"])]

        definition = story("http://127.0.0.1:9")
        definition["nodes"].append({"id": "deeper", "kind": "agent", "mode": "tool", "config": {"agent": "lead"}})
        definition["edges"].append({"source": "deeper", "target": "scout", "target_handle": "tools"})
        assert faults(definition) == [("tool_edge_target", ["deeper", "scout"])]

        definition = story("http://127.0.0.1:9")
        definition["edges"].append({"source": "lead", "target": "scout"})
        assert faults(definition) == [("cycle", ["scout", "lead"])]

        service.call("PATCH", "/agents/lead", {"tool_allowlist": ["mcp__*"]})
        assert faults(story("http://127.0.0.1:9")) == [("tool_not_permitted", ["scout", "lead"])]
        refused = service.call(
            "POST", "/runs", {"agent": "lead", "input": "Hi", "metadata": {"called_by": {}}}, expect=422
        )
        assert refused["code"] == "metadata_reserved"


@pytest.mark.requirement("A11", "F4", "F5")
def test_the_policies_of_the_caller_hold_for_the_agent_that_it_calls(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home", **ONE_PLACE) as service:
        prepared(service, server.url, tool_policies={"weather": {"decision": "deny"}})
        assert settled(service, begun(service))["status"] == "completed"
        (called,) = called_runs(service)
        results = results_by_tool(service.call("GET", f"/runs/{called['id']}/wait")["messages"])
        assert results["weather"]["is_error"]
        assert server.asked == []


@pytest.mark.requirement("E1", "F4", "F5")
def test_a_killed_service_makes_the_call_again_and_finds_the_run_that_it_started(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with weather() as server:
        server.held.clear()
        with serving(home, **ONE_PLACE) as service:
            prepared(service, server.url)
            run_id = begun(service)
            until_asked(server)
            (before,) = called_runs(service)
            service.process.kill()
            service.process.wait(20)
        server.held.set()
        with serving(home, **ONE_PLACE) as service:
            run = settled(service, run_id)
            assert (run["status"], run["output"]["text"]) == ("completed", "All is said."), run
            (after,) = called_runs(service)
            assert (after["id"], after["status"]) == (before["id"], "completed")
            result = results_by_tool(messages_of(service, run, "lead"))["agent__scout"]
            assert (result["is_error"], result["result"]) == (False, ANSWER)
            # What was under way is a GET, which may be sent again.
            assert server.asked == ["/weather/Ulm", "/weather/Ulm"]


@pytest.mark.requirement("E1", "F5")
def test_a_service_that_stops_leaves_the_called_run_for_the_next_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with weather() as server:
        server.held.clear()
        with serving(home, **ONE_PLACE) as service:
            prepared(service, server.url)
            run_id = begun(service)
            until_asked(server)
            service.stop()
        server.held.set()
        with serving(home, **ONE_PLACE) as service:
            run = settled(service, run_id)
            assert (run["status"], run["output"]["text"]) == ("completed", "All is said."), run
            (called,) = called_runs(service)
            assert called["status"] == "completed"


@pytest.mark.requirement("A12", "F5")
def test_cancelling_a_workflow_run_cancels_the_run_that_its_agent_called(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home", **ONE_PLACE) as service:
        prepared(service, server.url)
        server.held.clear()
        run_id = begun(service)
        until_asked(server)
        service.call("POST", f"/workflow-runs/{run_id}/cancel")
        assert settled(service, run_id)["status"] == "cancelled"
        until(lambda: called_runs(service)[0]["status"] == "cancelled", what="the called run is cancelled")
        server.held.set()


@pytest.mark.timeout(300)
@pytest.mark.requirement("E6", "F5")
def test_several_calls_at_once_are_answered_by_workers_with_one_place_each(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with weather() as server, postgres_databases.fresh() as url, cluster(url, tmp_path) as processes:
        api = processes.serve("api", "--no-worker")
        prepared(api, server.url, calls=[("agent__scout", {"input": f"Question {number}"}) for number in range(3)])
        processes.work("worker-1", **ONE_PLACE)
        run = settled(api, begun(api))
        assert (run["status"], run["output"]["text"]) == ("completed", "All is said."), run
        assert [called["status"] for called in called_runs(api)] == ["completed"] * 3
        assert json.dumps(messages_of(api, run, "lead")).count(ANSWER) == 3
