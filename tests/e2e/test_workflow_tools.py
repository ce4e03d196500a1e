"""Tools of workflows in a real service: each agent has what is wired to it and nothing else,
through kills, and while others ask the gateway; when the run has ended nothing is left."""

import json
import sys
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import carrying, until
from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, Service, a_turn, results_by_tool, serving
from tests.e2e.test_workflows import SECRET, Weather, settled, weather

pytestmark = pytest.mark.timeout(400)

EVERYTHING = (
    ("weather", {"city": "Ulm"}),
    ("news", {"topic": "bells"}),
    ("mcp__time__get_current_time", {"timezone": "UTC"}),
    ("mcp__watch__look", {"text": "here"}),
    ("code_execution", {"code": "1"}),
)
PATIENT = {"tool_timeout_s": 150, "turn_tool_timeout_s": 150}
"""The weather is held while a test does other things."""
WIRED = {
    "alice": {"weather", "mcp__time__get_current_time"},
    "bob": {"news", "mcp__watch__look"},
}


def component(url: str, name: str, exposed: str) -> Json:
    """A request with a token that no model sees."""
    return {
        "url": f"{url}/{name}/{{{{inputs.{exposed}}}}}",
        "headers": {"Authorization": "Bearer {{inputs.token}}"},
        "inputs": {exposed: {"type": "string"}, "token": {"type": "string"}},
        "tool": {
            "name": name,
            "description": f"The {name}.",
            "bound": {"token": {"secret": "WEATHER"}},
            "exposed": [exposed],
        },
    }


def story(url: str, log: Path) -> Json:
    """Two agents, one after the other: one has the weather and the time, the other the news and a
    server of the run's own."""
    command = [*ISOLATED_PYTHON, str(SERVERS / "watched_server.py"), str(log)]
    watch = {"slug": "watch", "kind": "custom", "command": command[0], "args": command[1:], "trusted": True}
    return {
        "name": "pair",
        "nodes": [
            {"id": "start", "kind": "entrypoint"},
            {"id": "weather", "kind": "http_request", "mode": "tool", "config": component(url, "weather", "city")},
            {"id": "news", "kind": "http_request", "mode": "tool", "config": component(url, "news", "topic")},
            {
                "id": "clock",
                "kind": "mcp_server",
                "mode": "tool",
                "config": {"server": "time", "tools": ["get_current_time"]},
            },
            {"id": "watch", "kind": "mcp_server", "mode": "tool", "config": {"server": watch}},
            {"id": "alice", "kind": "agent", "config": {"agent": "alice", "input": "Go."}},
            {"id": "bob", "kind": "agent", "config": {"agent": "bob", "input": "Go."}},
        ],
        "edges": [
            {"source": "start", "target": "alice"},
            {"source": "alice", "target": "bob"},
            {"source": "weather", "target": "alice", "target_handle": "tools"},
            {"source": "clock", "target": "alice", "target_handle": "tools"},
            {"source": "news", "target": "bob", "target_handle": "tools"},
            {"source": "watch", "target": "bob", "target_handle": "tools"},
        ],
    }


def prepared(service: Service, url: str) -> Path:
    """Agents that call every tool there is, with tools of their own that do not count; the log of
    the run's own server."""
    log = service.home / "watch.log"
    service.server("time", sys.executable, "-m", "mcp_server_time")
    service.call("POST", "/secrets", {"name": "WEATHER", "value": SECRET})
    for name in WIRED:
        model = service.script(name, a_turn("I call everything.", *EVERYTHING), a_turn(f"{name} is done."))
        service.agent(name, model, tools=["code_execution"], mcp_servers=["time"], limits=PATIENT)
    saved = service.call("POST", "/workflows", story(url, log))
    assert saved["warnings"] == []
    return log


def by_id(run: Json) -> dict[str, Json]:
    return {node["node_id"]: node for node in run["nodes"]}


def messages_of(service: Service, run: Json, node_id: str) -> list[Json]:
    return list(service.call("GET", f"/runs/{by_id(run)[node_id]['run_id']}/wait")["messages"])


@pytest.mark.requirement("F2", "F3", "F6")
def test_each_agent_sees_and_calls_exactly_what_is_wired_to_it(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home") as service:
        log = prepared(service, server.url)
        run_id = service.call("POST", "/workflows/pair/runs", {}, expect=202)["id"]
        run = settled(service, run_id)
        assert (run["status"], run["output"]["text"]) == ("completed", "bob is done."), run
        told = [json.dumps(run), service.client.get(f"/workflow-runs/{run_id}").text]
        for name, own in WIRED.items():
            results = results_by_tool(messages_of(service, run, name))
            assert results.keys() == {tool for tool, _ in EVERYTHING}
            for tool, result in results.items():
                assert ("was not found" in str(result["result"])) is (tool not in own), (name, tool, result)
                assert result["is_error"] is (tool not in own)
            told.append(json.dumps(results))
            told.append(json.dumps(service.events(by_id(run)[name]["run_id"])))
        assert server.asked == ["/weather/Ulm", "/news/bells"]
        assert log.read_text().count("called look") == 1
        assert {by_id(run)[tool]["status"] for tool in ("weather", "news", "clock", "watch")} == {"ready"}

        audit = service.call("GET", "/audit-events?limit=200")["data"]
        refused = {(entry["run_id"], entry["tool"]) for entry in audit if entry["action"] == "tool.failed"}
        for name, own in WIRED.items():
            others = {tool for tool, _ in EVERYTHING} - own
            assert {tool for run_id, tool in refused if run_id == by_id(run)[name]["run_id"]} == others

        until(lambda: not carrying(str(log)), what="the run's own server is closed")
        told += [json.dumps(audit), service.log.read_text(), json.dumps(service.call("GET", "/workflows/pair"))]
        assert all(SECRET not in text for text in told)
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in service.home.rglob("*.db*") if file.is_file())


@pytest.mark.requirement("F1", "F3")
def test_edges_of_tools_alone_reach_an_agent_which_has_native_tools_too(tmp_path: Path) -> None:
    calls = (("weather", {"city": "Ulm"}), ("code_execution", {"code": "40 + 2"}), ("source_query", {"query": "x"}))
    nodes: list[Json] = [
        {"id": "start", "kind": "entrypoint"},
        {"id": "interpreter", "kind": "native_tool", "mode": "tool", "config": {"tool": "code_execution"}},
        {"id": "analyst", "kind": "agent", "config": {"agent": "analyst"}},
    ]
    edges = [
        {"source": name, "source_handle": "tools", "target": "analyst", "target_handle": "tools"}
        for name in ("weather", "interpreter")
    ]
    with weather() as server, serving(tmp_path / "home") as service:
        service.call("POST", "/secrets", {"name": "WEATHER", "value": SECRET})
        request = component(server.url, "weather", "city")
        nodes.append({"id": "weather", "kind": "http_request", "mode": "tool", "config": request})
        service.agent("analyst", service.script("analyst", a_turn("I look.", *calls), a_turn("All clear.")), tools=[])
        saved = service.call("POST", "/workflows", {"name": "abuse", "nodes": nodes, "edges": edges})
        assert saved["warnings"] == []
        started = service.call("POST", "/workflows/abuse/runs", {"input": {"ip": "192.0.2.1"}}, expect=202)
        run = settled(service, started["id"])
        assert (run["status"], run["output"]["text"]) == ("completed", "All clear."), run
        told = messages_of(service, run, "analyst")
    assert "192.0.2.1" in json.dumps(told[0]), "the agent begins with the input of the run"
    results = results_by_tool(told)
    assert "42" in str(results["code_execution"]["result"])
    assert {name for name, result in results.items() if "was not found" in str(result["result"])} == {"source_query"}
    assert server.asked == ["/weather/Ulm"]


async def named_through_the_gateway(session: Json, called: str) -> tuple[set[str], int]:
    """What a client is shown, and the code with which a call is refused."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {session['token']}"}, timeout=60) as http,
        Client(streamable_http_client(session["url"], http_client=http)) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError) as refused:
            await client.call_tool(called, {"topic": "bells"})
        return names, refused.value.error.code


def held_at_alice(service: Service, server: Weather) -> str:
    """A run whose first agent waits for the weather."""
    server.held.clear()
    run_id = str(service.call("POST", "/workflows/pair/runs", {}, expect=202)["id"])
    until(lambda: "/weather/Ulm" in server.asked, what="the weather is asked for")
    return run_id


@pytest.mark.requirement("F3", "F5", "F6")
async def test_the_gateway_opens_exactly_the_nodes_of_a_session_until_the_run_ends(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home") as service:
        prepared(service, server.url)
        run_id = held_at_alice(service, server)

        def opened(*node_ids: str, expect: int = 201) -> Json:
            body = {"workflow_run_id": run_id, "node_ids": list(node_ids)}
            return service.call("POST", "/gateway-sessions", body, expect=expect)

        of_alice, of_clock, of_nobody = opened("alice"), opened("clock"), opened()
        assert (of_alice["workflow_run_id"], of_alice["node_ids"]) == (run_id, ["weather", "clock"])
        assert await named_through_the_gateway(of_alice, "news") == (WIRED["alice"], -32602)
        assert await named_through_the_gateway(of_clock, "weather") == ({"mcp__time__get_current_time"}, -32602)
        assert await named_through_the_gateway(of_nobody, "weather") == (set(), -32602)
        audit = service.call("GET", "/audit-events?limit=200")["data"]
        refused = [
            entry["tool"]
            for entry in audit
            if entry["action"] == "tool.failed" and entry["details"].get("gateway_session_id") == of_alice["id"]
        ]
        assert refused == ["news"]

        for wrong in (("nowhere",), ("start",), ("weather", "weather"), ("weather", "news"), ("alice", "bob")):
            answer = opened(*wrong, expect=422)
            assert answer["code"] == "node_ids_invalid"

        server.held.set()
        assert settled(service, run_id)["status"] == "completed"
        assert opened("alice", expect=409)["code"] == "workflow_run_ended"
        until(lambda: _refusal(of_alice) == 401, what="the session has ended with the run")


def _refusal(session: Json) -> int:
    headers = {"Authorization": f"Bearer {session['token']}", "Accept": "application/json, text/event-stream"}
    with httpx2.Client(headers=headers, timeout=60) as http:
        return http.post(session["url"], json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status_code


@pytest.mark.requirement("F2", "F3", "F4")
def test_a_killed_service_goes_on_with_the_same_tools_and_repeats_no_finished_node(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with weather() as server:
        with serving(home) as service:
            log = prepared(service, server.url)
            run_id = held_at_alice(service, server)
            before = by_id(service.call("GET", f"/workflow-runs/{run_id}"))
            until(lambda: _has_told_the_time(service, before["alice"]["run_id"]), what="one of its calls is finished")
            service.process.kill()
            service.process.wait(20)
        server.held.set()
        with serving(home) as service:
            run = settled(service, run_id)
            assert (run["status"], run["attempt"]) == ("completed", 2), run
            after = by_id(run)
            for tool in ("weather", "news", "clock", "watch"):
                assert (after[tool]["status"], after[tool]["attempt"]) == ("ready", 1)
                assert after[tool] == before[tool]
            assert after["alice"]["run_id"] == before["alice"]["run_id"]
            # What was under way is a GET, which may be sent again.
            assert server.asked == ["/weather/Ulm", "/weather/Ulm", "/news/bells"]
            for name, own in WIRED.items():
                results = results_by_tool(messages_of(service, run, name))
                assert {tool for tool, result in results.items() if not result["is_error"]} == own
            assert log.read_text().count("called look") == 1


def _has_told_the_time(service: Service, run_id: str) -> bool:
    finished = [event["name"] for event in service.events(run_id) if event["type"] == "tool.executed"]
    return finished == ["mcp__time__get_current_time"]


@pytest.mark.requirement("F6")
def test_two_runs_of_one_workflow_do_not_touch_each_other(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home") as service:
        log = prepared(service, server.url)
        first = held_at_alice(service, server)
        second = str(service.call("POST", "/workflows/pair/runs", {}, expect=202)["id"])
        until(lambda: server.asked.count("/weather/Ulm") == 2, what="both runs ask for the weather")
        service.call("POST", f"/workflow-runs/{first}/cancel")
        assert settled(service, first)["status"] == "cancelled"
        server.held.set()
        run = settled(service, second)
        assert run["status"] == "completed", run
        for name, own in WIRED.items():
            results = results_by_tool(messages_of(service, run, name))
            assert {tool for tool, result in results.items() if not result["is_error"]} == own
        assert log.read_text().count("called look") == 1


@pytest.mark.requirement("E6", "F2", "F3", "F6")
def test_workers_on_postgresql_share_the_tools_of_a_run_and_let_go_of_them(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with weather() as server, postgres_databases.fresh() as url, cluster(url, tmp_path) as processes:
        api = processes.serve("api", "--no-worker")
        log = prepared(api, server.url)
        processes.work("worker-1")
        processes.work("worker-2")
        run = settled(api, api.call("POST", "/workflows/pair/runs", {}, expect=202)["id"])
        assert run["status"] == "completed", run
        for name, own in WIRED.items():
            results = results_by_tool(messages_of(api, run, name))
            assert {tool for tool, result in results.items() if not result["is_error"]} == own
        assert log.read_text().count("called look") == 1
        until(lambda: not carrying(str(log)), what="the run's own server is closed")


@pytest.mark.requirement("A7", "C4", "F3")
def test_canaries_and_limits_of_an_agent_hold_for_what_is_wired_to_it(tmp_path: Path) -> None:
    with weather() as server, serving(tmp_path / "home") as service:
        service.call("POST", "/secrets", {"name": "WEATHER", "value": SECRET})
        canary = "canary-7f3a-of-ulm"
        leaking = service.script("leaking", a_turn("", ("weather", {"city": canary})), a_turn("Done."))
        service.agent("leaking", leaking, canary_tokens=[{"id": "ulm", "token": canary}])
        calls = [a_turn("", ("weather", {"city": city})) for city in ("Ulm", "Bonn", "Jena")]
        service.agent("busy", service.script("busy", *calls, a_turn("Done.")), limits={"max_tool_calls": 2})
        for name in ("leaking", "busy"):
            nodes = [
                {"id": "start", "kind": "entrypoint"},
                {
                    "id": "weather",
                    "kind": "http_request",
                    "mode": "tool",
                    "config": component(server.url, "weather", "city"),
                },
                {"id": "agent", "kind": "agent", "config": {"agent": name, "input": "Go."}},
            ]
            edges = [
                {"source": "start", "target": "agent"},
                {"source": "weather", "target": "agent", "target_handle": "tools"},
            ]
            service.call("POST", "/workflows", {"name": name, "nodes": nodes, "edges": edges})
        ended = {
            name: settled(service, service.call("POST", f"/workflows/{name}/runs", {}, expect=202)["id"])
            for name in ("leaking", "busy")
        }
        assert {name: run["error"]["code"] for name, run in ended.items()} == {
            "leaking": "agent_run_halted",
            "busy": "agent_run_incomplete",
        }
        assert server.asked == ["/weather/Ulm", "/weather/Bonn"]


@pytest.mark.requirement("C5", "F4")
def test_a_step_calls_a_tool_of_a_server_by_itself(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        service.server("time", sys.executable, "-m", "mcp_server_time")
        config = {
            "server": "time",
            "call": "convert_time",
            "arguments": {"source_timezone": "UTC", "time": "{{start}}", "target_timezone": "Asia/Tokyo"},
        }
        nodes = [
            {"id": "start", "kind": "entrypoint"},
            {"id": "tokyo", "kind": "mcp_server", "config": config},
            {"id": "out", "kind": "transform", "config": {"expression": "@", "input": "In Tokyo: {{tokyo.text}}"}},
        ]
        edges = [{"source": "start", "target": "tokyo"}, {"source": "tokyo", "target": "out"}]
        service.call("POST", "/workflows", {"name": "clock", "nodes": nodes, "edges": edges})
        run = settled(service, service.call("POST", "/workflows/clock/runs", {"input": "12:00"}, expect=202)["id"])
        assert run["status"] == "completed", run
        assert "T21:00:00+09:00" in run["output"]
        (entry,) = service.call("GET", "/audit-events?action=tool.executed")["data"]
        assert (entry["tool"], entry["details"]["node_id"]) == ("mcp__time__convert_time", "tokyo")
        wrong = service.call("POST", "/workflows/clock/runs", {"input": "noon"}, expect=202)["id"]
        failed = settled(service, wrong)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "mcp_tool_error"), failed


@pytest.mark.requirement("F2")
def test_bad_tools_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        log = prepared(service, "http://127.0.0.1:9")
        twice = story("http://127.0.0.1:9", log)
        twice["nodes"][2]["config"]["tool"]["name"] = "weather"
        twice["edges"].append({"source": "news", "target": "alice", "target_handle": "tools"})
        checked = service.call("POST", "/workflows/validate", twice)
        assert [(fault["code"], fault["node_ids"]) for fault in checked["errors"]] == [
            ("tool_name_clash", ["weather", "news", "alice"])
        ]

        idle = story("http://127.0.0.1:9", log)
        idle["edges"] = [edge for edge in idle["edges"] if edge["source"] != "watch"]
        checked = service.call("POST", "/workflows/validate", idle)
        assert checked["errors"] == []
        assert [(fault["code"], fault["node_ids"]) for fault in checked["warnings"]] == [("tool_not_wired", ["watch"])]

        without = story("http://127.0.0.1:9", log)
        without["nodes"][1]["config"]["tool"]["bound"]["token"] = {"secret": "NOWHERE"}
        answer = service.call("POST", "/workflows", {**without, "name": "other"}, expect=422)
        assert "There is no secret 'NOWHERE'" in json.dumps(answer)
        assert service.call("GET", "/runs")["data"] == []
