"""Workflows in a real service: requests with secrets, agents, a person's answer, a kill in the
middle, a stop."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, results_by_tool, serving

SECRET = "weather-token-that-nobody-sees"
ENDED = {"completed", "failed", "cancelled", "requires_action"}


class Weather(ThreadingHTTPServer):
    """Tells the weather to who has the token, and echoes the token back as careless servers do. The
    first `holds` requests, or all, wait until `held` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[str] = []
        self.held = threading.Event()
        self.held.set()
        self.holds: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Weather

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.server.holds is None or len(self.server.asked) <= self.server.holds:
            self.server.held.wait(150)
        known = self.headers.get("Authorization") == f"Bearer {SECRET}"
        body = json.dumps({"sky": "clear", "degrees": 21, "you_sent": self.headers.get("Authorization")}).encode()
        self.send_response(200 if known else 403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def weather() -> Iterator[Weather]:
    server = Weather()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.held.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def story(url: str) -> Json:
    """Fetch the weather and a poem at once; a person decides whether they are published."""
    fetch = {
        "url": f"{url}/{{{{inputs.city}}}}",
        "headers": {"Authorization": "Bearer {{inputs.token}}"},
        "inputs": {"city": {"type": "string"}, "token": {"type": "string"}},
        "bound": {"city": "{{start.city}}", "token": {"secret": "WEATHER"}},
        "timeout_s": 150,  # it is held while a worker starts
    }
    return {
        "name": "story",
        "nodes": [
            {"id": "start", "kind": "entrypoint", "config": {"schema": {"type": "object", "required": ["city"]}}},
            {"id": "fetch", "kind": "http_request", "config": fetch},
            {"id": "poet", "kind": "agent", "config": {"agent": "poet", "input": "A line about {{start.city}}."}},
            {"id": "page", "kind": "transform", "config": {"expression": "join(' ', @)", "input": PARTS}},
            {"id": "review", "kind": "human_input", "config": {"prompt": "Publish? {{page}}", "schema": YES_OR_NO}},
            {"id": "ok", "kind": "condition", "config": {"expression": "@"}},
            {"id": "out", "kind": "transform", "config": {"expression": "@", "input": "{{page}}"}},
            {"id": "bin", "kind": "transform", "config": {"expression": "'thrown away'"}},
        ],
        "edges": [
            {"source": "start", "target": "fetch"},
            {"source": "start", "target": "poet"},
            {"source": "fetch", "target": "page"},
            {"source": "poet", "target": "page"},
            {"source": "page", "target": "review"},
            {"source": "review", "target": "ok"},
            {"source": "ok", "source_handle": "true", "target": "out"},
            {"source": "ok", "source_handle": "false", "target": "bin"},
        ],
    }


PARTS = ["{{fetch.body.sky}}", "{{poet.text}}"]
YES_OR_NO = {"type": "boolean"}


def prepared(service: Service, url: str) -> None:
    tried = a_turn("I compute.", ("code_execution", {"code": "1"}))
    model = service.script("poet", tried, a_turn("High stands the minster."))
    service.agent("poet", model, tools=["code_execution"])
    service.call("POST", "/secrets", {"name": "WEATHER", "value": SECRET})
    saved = service.call("POST", "/workflows", story(url))
    assert saved["warnings"] == []


def settled(service: Service, run_id: str) -> Json:
    """The run once it has ended or waits for a person."""
    found: Json = {}

    def at_rest() -> bool:
        found.update(service.call("GET", f"/workflow-runs/{run_id}"))
        return found["status"] in ENDED

    until(at_rest, what="the workflow run has ended or waits")
    return found


def events(service: Service, run_id: str, after: int = 0) -> list[Json]:
    with service.client.stream(
        "GET", f"/workflow-runs/{run_id}/stream", headers={"Last-Event-ID": str(after)}
    ) as stream:
        lines = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


@pytest.mark.requirement("F3", "F4")
def test_a_workflow_runs_through_requests_agents_and_a_persons_answer(service: Service) -> None:
    with weather() as server:
        prepared(service, server.url)
        started = service.call("POST", "/workflows/story/runs", {"input": {"city": "Ulm / Donau"}}, expect=202)
        run = settled(service, started["id"])
        assert run["status"] == "requires_action", run
        page = "clear High stands the minster."
        asked = {"prompt": f"Publish? {page}", "schema": YES_OR_NO}
        assert run["pending"] == [{"node_id": "review", "run_id": None, "asked": asked}]
        assert server.asked == ["/Ulm%20%2F%20Donau"]
        fetched = next(node for node in run["nodes"] if node["node_id"] == "fetch")
        assert fetched["output"]["body"]["you_sent"] == "Bearer [hidden]"
        assert SECRET not in json.dumps(run)

        poet = next(node for node in run["nodes"] if node["node_id"] == "poet")
        begun = service.call("GET", f"/runs/{poet['run_id']}")
        assert (begun["metadata"]["node_id"], begun["status"]) == ("poet", "completed")

        # Nothing is wired to the poet, so its agent's own tools are not there.
        (computed,) = results_by_tool(service.call("GET", f"/runs/{poet['run_id']}/wait")["messages"]).values()
        assert "was not found" in str(computed["result"])

        path = f"/workflow-runs/{run['id']}"
        service.call("POST", f"{path}/resume", {"answers": [{"node_id": "review", "answer": "maybe"}]}, expect=422)
        service.call("POST", f"{path}/resume", {"answers": [{"node_id": "review", "answer": True}]})
        ended = settled(service, run["id"])
        assert (ended["status"], ended["output"]) == ("completed", {"out": page})
        told = events(service, run["id"])
        assert [event["seq"] for event in told[:-1]] == list(range(1, len(told)))
        assert (told[-2]["type"], told[-1]) == ("workflow.completed", {"type": "end", "status": "completed"})
        assert events(service, run["id"], after=told[-2]["seq"] - 1) == told[-2:]
        drawn = service.client.get(f"{path}/diagram")
        assert drawn.headers["content-type"].startswith("text/vnd.mermaid")
        assert "class n7 skipped" in drawn.text
        service.call("POST", f"{path}/resume", {"answers": [{"node_id": "review", "answer": True}]}, expect=409)


@pytest.mark.requirement("F4")
def test_a_killed_service_goes_on_without_repeating_a_finished_node(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with weather() as server:
        with serving(home) as service:
            prepared(service, server.url)
            server.held.clear()
            run_id = service.call("POST", "/workflows/story/runs", {"input": {"city": "Ulm"}}, expect=202)["id"]

            def poet_is_done() -> bool:
                nodes = service.call("GET", f"/workflow-runs/{run_id}")["nodes"]
                return {"poet": "succeeded", "fetch": "running"}.items() <= {
                    node["node_id"]: node["status"] for node in nodes
                }.items()

            until(poet_is_done, what="one branch is done and the other is not")
            until(lambda: bool(server.asked), what="the request is under way")
            before = service.call("GET", f"/workflow-runs/{run_id}")
            service.process.kill()
            service.process.wait(20)
        server.held.set()
        with serving(home) as service:
            run = settled(service, run_id)
            assert run["status"] == "requires_action", run
            poets = [[node for node in found["nodes"] if node["node_id"] == "poet"] for found in (before, run)]
            assert poets[0] == poets[1]
            assert len(service.call("GET", "/runs")["data"]) == 1
            assert run["attempt"] == 2
            # What was under way is a GET, which may be sent again.
            assert server.asked == ["/Ulm", "/Ulm"]
            actions = [entry["action"] for entry in service.call("GET", "/audit-events")["data"]]
            assert actions.count("workflow.run_started") == 1


@pytest.mark.requirement("F4")
def test_a_stopped_workflow_stops_what_it_does(service: Service) -> None:
    with weather() as server:
        prepared(service, server.url)
        server.held.clear()
        run_id = service.call("POST", "/workflows/story/runs", {"input": {"city": "Ulm"}}, expect=202)["id"]
        until(lambda: bool(server.asked), what="the request is under way")
        service.call("POST", f"/workflow-runs/{run_id}/cancel")
        run = settled(service, run_id)
        assert run["status"] == "cancelled"
        assert {node["status"] for node in run["nodes"]} <= {"succeeded", "cancelled", "skipped"}
        service.call("POST", f"/workflow-runs/{run_id}/cancel")


def test_what_cannot_be_run_is_refused(service: Service) -> None:
    with weather() as server:
        prepared(service, server.url)
        service.call("POST", "/workflows/story/runs", {"input": "Ulm"}, expect=422)
        service.call("POST", "/workflows/nowhere/runs", {"input": {"city": "Ulm"}}, expect=404)
        service.call("DELETE", "/secrets/WEATHER", expect=409)


@pytest.mark.timeout(300)
@pytest.mark.requirement("E4", "E6", "F4")
def test_workers_on_postgresql_hand_workflows_to_each_other(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with weather() as server, postgres_databases.fresh() as url, cluster(url, tmp_path) as processes:
        api = processes.serve("api", "--no-worker")
        prepared(api, server.url)
        server.held.clear()
        leaving = processes.work("worker-1")
        run_id = api.call("POST", "/workflows/story/runs", {"input": {"city": "Ulm"}}, expect=202)["id"]
        until(lambda: bool(server.asked), what="the request is under way")
        processes.work("worker-2")
        assert leaving.stop() == 0
        server.held.set()
        run = settled(api, run_id)
        assert (run["status"], run["attempt"]) == ("requires_action", 2), run
        assert len(api.call("GET", "/runs")["data"]) == 1
        answer = {"answers": [{"node_id": "review", "answer": False}]}
        api.call("POST", f"/workflow-runs/{run_id}/resume", answer)
        ended = settled(api, run_id)
        assert (ended["status"], ended["output"]) == ("completed", {"bin": "thrown away"})
