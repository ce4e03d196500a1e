"""What a user gets wrong: each gets a code in bounded time, and nothing half-done stays behind."""

import http.client
import json
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.processes import carrying, descendants, resident_bytes, until
from tests.e2e.service import (
    ISOLATED_PYTHON,
    SERVERS,
    TERMINAL,
    Json,
    Service,
    a_turn,
    assert_consistent,
    parts,
    serving,
)

BOUND_S = 100.0
"""A server that says nothing is waited for 30 s, and the machine may be busy."""
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for the table; its provider `openai` is at an address where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can come to listen there
        down = f"http://127.0.0.1:{reserved.getsockname()[1]}/v1"
        home = tmp_path_factory.mktemp("bad") / "home"
        with serving(home, OPENAI_API_KEY="sk-not-used-by-anyone", OPENAI_BASE_URL=down) as running:
            running.agent("hello", "scripted:hello.yaml")
            running.call("POST", "/threads", {})
            yield running


def the_problem(response: httpx.Response, status: int, code: str) -> Json:
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"].startswith("application/problem+json")
    problem: Json = response.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["detail"]
    assert "Traceback" not in response.text
    return problem


AGENT = {"name": "guide", "model": "scripted:hello.yaml"}
SERVER = {"slug": "things", "kind": "custom", "command": "true"}
NO_ID = "00000000000000000000000000"


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("request_line", "body", "answer"),
    [
        ("POST /runs", {"agent": "nobody", "input": "Hi"}, (404, "agent_not_found")),
        ("POST /runs/wait", {"agent": "nobody", "input": "Hi"}, (404, "agent_not_found")),
        ("POST /runs/stream", {"agent": "nobody", "input": "Hi"}, (404, "agent_not_found")),
        ("GET /agents/nobody", None, (404, "agent_not_found")),
        (f"POST /threads/thr_{NO_ID}/runs", {"agent": "hello", "input": "Hi"}, (404, "thread_not_found")),
        (f"GET /threads/thr_{NO_ID}/messages", None, (404, "thread_not_found")),
        (f"GET /runs/run_{NO_ID}", None, (404, "run_not_found")),
        (f"GET /runs/run_{NO_ID}/stream", None, (404, "run_not_found")),
        (f"POST /runs/run_{NO_ID}/cancel", None, (404, "run_not_found")),
        ("GET /mcp-servers/nothing", None, (404, "mcp_server_not_found")),
        ("POST /mcp-servers/nothing/test", None, (404, "mcp_server_not_found")),
        ("GET /nothing", None, (404, "route_not_found")),
        ("PUT /agents", AGENT, (405, "method_not_allowed")),
        ("POST /agents", {**AGENT, "model": "scripted:nothing.yaml"}, (422, "agent_invalid")),
        ("POST /agents", {**AGENT, "model": "nobody:model"}, (422, "agent_invalid")),
        ("POST /agents", {**AGENT, "model": "no-provider"}, (422, "agent_invalid")),
        ("POST /agents", {**AGENT, "tools": ["mind_reading"]}, (422, "agent_invalid")),
        ("POST /agents", {**AGENT, "mcp_servers": ["nothing"]}, (422, "agent_invalid")),
        ("POST /agents", {**AGENT, "instuctions": "Be brief."}, (422, "body_invalid")),
        ("POST /mcp-servers", {**SERVER, "comand": "x"}, (422, "body_invalid")),
        ("POST /mcp-servers", {**SERVER, "slug": "No Slug!"}, (422, "mcp_server_invalid")),
        ("POST /mcp-servers", {"slug": "things", "kind": "http"}, (422, "mcp_server_invalid")),
        ("POST /runs", {"agent": "hello", "input": "Hi", "model": "openai:other"}, (403, "model_not_allowed")),
        ("POST /runs", {"agent": "hello"}, (422, "body_invalid")),
        ("POST /runs", {"agent": "hello", "input": "Hi", "multitask_strategy": "hope"}, (422, "body_invalid")),
        ("GET /runs?limit=none", None, (422, "parameters_invalid")),
        ("GET /runs?cursor=rubbish", None, (422, "cursor_invalid")),
    ],
)
def test_what_is_unknown_or_misspelt_is_a_problem_with_a_code(
    service: Service, request_line: str, body: object, answer: tuple[int, str]
) -> None:
    method, path = request_line.split()
    the_problem(service.client.request(method, path, json=body), *answer)
    assert [agent["name"] for agent in service.call("GET", "/agents")["data"] if agent["name"] == "guide"] == []
    assert [entry for entry in service.call("GET", "/mcp-servers")["data"] if entry["slug"] == "things"] == []


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({}, "token_missing"),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, "token_missing"),
        ({"Authorization": "Bearer dgm_not-a-key-of-this-harness"}, "token_invalid"),
        ({"Authorization": "Bearer \xe4"}, "token_invalid"),
    ],
)
def test_a_wrong_key_is_refused_before_anything_is_read(service: Service, header: dict[str, str], code: str) -> None:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in header.items()]
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as stranger:
        for method, path in (("GET", "/v1/agents"), ("POST", "/v1/runs/wait"), ("GET", "/v1/runs/run_x/stream")):
            response = stranger.request(method, path, headers=headers, content=b"{rubbish")
            the_problem(response, 401, code)
            assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_misspelt_field_is_named_with_what_was_meant(service: Service) -> None:
    response = service.client.post("/agents", json={**AGENT, "instuctions": "Be brief."})
    [fault] = the_problem(response, 422, "body_invalid")["errors"]
    assert fault["path"] == "instuctions"
    assert "'instructions'" in fault["message"]


def test_what_is_not_json_is_400(service: Service) -> None:
    response = service.client.post("/agents", content=b'{"name": ', headers={"Content-Type": "application/json"})
    the_problem(response, 400, "json_malformed")


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_a_body_of_fifty_megabytes_is_413_and_is_not_kept_in_memory(service: Service, declared: bool) -> None:
    before = resident_bytes(service.process.pid, peak=True)
    address = urlsplit(service.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
    connection.putrequest("POST", "/v1/agents")
    for name, value in {**service.headers, "Content-Type": "application/json"}.items():
        connection.putheader(name, value)
    piece = b'"' + b"x" * (MIB - 1)
    if declared:
        connection.putheader("Content-Length", str(50 * MIB))
    else:
        connection.putheader("Transfer-Encoding", "chunked")
        piece = b"%x\r\n%b\r\n" % (len(piece), piece)
    connection.endheaders()
    sent = 0
    try:
        for _ in range(50):
            connection.send(piece)
            sent += 1
    except (BrokenPipeError, ConnectionResetError):
        pass  # the answer came before the end of the body, and the connection was closed
    try:
        response = connection.getresponse()
        assert response.status == 413
        assert json.loads(response.read())["code"] == "body_too_large"
    except ConnectionResetError:
        assert sent < 50  # the kernel threw the answer away together with what nobody read
    finally:
        connection.close()
    assert resident_bytes(service.process.pid, peak=True) - before < 30 * MIB
    assert service.call("GET", "/agents")["data"]


@pytest.mark.requirement("A11")
def test_a_model_endpoint_that_is_down_fails_the_run_in_bounded_time_and_keeps_the_transcript(service: Service) -> None:
    service.agent("down", "openai:gpt-5-mini", limits={"model_attempts": 3})
    began = time.monotonic()
    answer = service.run("down", "Are you there?")
    assert time.monotonic() - began < BOUND_S
    assert answer["run"]["status"] == "failed"
    assert answer["run"]["error"]["code"] == "model_unavailable"
    assert [part["text"] for part in parts(answer["messages"], "text")] == ["Are you there?"]
    events = service.events(answer["run"]["id"])
    assert_consistent(answer["messages"], events)
    assert events[-1]["type"] == "run.failed"
    assert {"model.retrying"} <= {event["type"] for event in events}


@pytest.mark.requirement("A11")
def test_a_model_that_is_down_is_replaced_by_the_agents_fallback(service: Service) -> None:
    service.agent("fallback", "openai:gpt-5-mini", fallback_models=["scripted:hello.yaml"])
    answer = service.run("fallback", "Are you there?")
    assert answer["run"]["status"] == "completed"
    assert "Are you there?" in answer["run"]["output"]


@pytest.mark.timeout(300)
@pytest.mark.requirement("A5", "B3", "B5", "B11")
def test_a_command_that_is_no_mcp_server_is_told_by_the_test_and_fails_no_run(service: Service) -> None:
    """The four ways at the same time: two of them are only told by waiting."""
    before = descendants(service.process.pid)
    kinds = ("missing", "exits", "rubbish", "silent")
    for kind in kinds:
        marker = marker_of(service, kind)
        faulty = (*ISOLATED_PYTHON, str(SERVERS / "faulty_server.py"), kind, marker)
        service.server(f"broken-{kind}", *((marker,) if kind == "missing" else faulty))
        service.watched_server(f"sound-{kind}")
    with ThreadPoolExecutor(max_workers=2 * len(kinds)) as pool:
        told = pool.map(lambda kind: what_its_test_says(service, kind), kinds)
        runs = [pool.submit(run_with_it, service, kind) for kind in kinds]
        said = dict(zip(kinds, told, strict=True))
        for run in runs:
            run.result()
    assert "No such file" in said["missing"]
    assert "I cannot find my configuration" in said["exits"]
    log = service.log.read_text()
    assert log.count("MCP server unavailable at run start") == len(kinds)
    assert "Traceback" not in log
    until(lambda: "connecting" not in states(service, kinds), what="the end of all attempts to connect")
    for kind in kinds:
        until(partial(_is_gone, marker_of(service, kind)), what=f"the end of the {kind} server")
    until(lambda: not descendants(service.process.pid) - before, what="the end of all servers")
    assert [run for run in service.call("GET", "/runs?limit=100")["data"] if run["status"] not in TERMINAL] == []


def states(service: Service, kinds: Sequence[str]) -> list[str]:
    return [service.call("GET", f"/mcp-servers/broken-{kind}/status")["state"] for kind in kinds]


def _is_gone(marker: str) -> bool:
    return not carrying(marker)


def marker_of(service: Service, kind: str) -> str:
    """A path that is nowhere but in the command line of the broken server."""
    return f"{service.home.parent}/{kind}"


def what_its_test_says(service: Service, kind: str) -> str:
    began = time.monotonic()
    tested = service.call("POST", f"/mcp-servers/broken-{kind}/test")
    assert time.monotonic() - began < BOUND_S
    assert tested["ok"] is False
    assert tested["tools"] == []
    assert tested["error"]["code"]
    assert tested["error"]["detail"]
    return json.dumps(tested["error"])


def run_with_it(service: Service, kind: str) -> None:
    """A run of an agent that has the broken server and a sound one."""
    broken, sound = f"broken-{kind}", f"sound-{kind}"
    calls = ((f"mcp__{broken}__anything", {"text": "x"}), (f"mcp__{sound}__look", {"text": "still here"}))
    model = service.script(broken, a_turn("Both.", *calls), a_turn("{{ results.last }}"))
    service.agent(broken, model, mcp_servers=[broken, sound])
    began = time.monotonic()
    answer = service.run(broken)
    assert time.monotonic() - began < BOUND_S
    assert answer["run"]["status"] == "completed"
    failed, succeeded = parts(answer["messages"], "tool_result")
    assert failed["is_error"]
    assert f"mcp__{broken}__anything was not found" in failed["result"]
    assert succeeded["result"] == "look says still here"
    assert_consistent(answer["messages"], service.events(answer["run"]["id"]))
