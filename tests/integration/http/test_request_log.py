"""The request log: which requests have a line, at which level, with which ids, and what it never
says."""

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from io import StringIO

import pytest
from pytest_mock import MockerFixture

from application.agents.queries import ListAgents
from application.system.readiness import Obstacle
from domain.identity.role import Role
from infrastructure.runtime.logs import configure_logging
from infrastructure.secrets.redaction import Redactor
from interfaces.http import access_log
from interfaces.http.line_budget import LineBudget
from tests.builders import ORG
from tests.composition import MODEL, the_settings
from tests.integration.http.gateway_caller import ECHO, Caller, an_agent, opened
from tests.integration.http.service import Conversation, Harness, Service, token_of

Line = dict[str, object]
SECRET = "s3cret-of-somebody"
EACH_IS_SLOW = 0
NONE_IS_SLOW = 3_600_000


@asynccontextmanager
async def serving(slow_ms: int = NONE_IS_SLOW) -> AsyncIterator[Service]:
    """A service of the test's own: how many lines there may be depends on those before."""
    settings = the_settings().model_copy(update={"log_slow_ms": slow_ms})
    async with Harness(settings=settings).service() as service:
        yield service


@contextmanager
def json_log(level: str = "info") -> Iterator[list[Line]]:
    """The lines of our own loggers as they are written, there at the end."""
    root = logging.getLogger()
    handlers, former = root.handlers[:], root.level
    stream, lines = StringIO(), list[Line]()
    configure_logging(level="debug" if level == "debug" else "info", form="json", redactor=Redactor(), stream=stream)
    try:
        yield lines
    finally:
        root.handlers[:] = handlers
        root.setLevel(former)
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        lines += [line for line in written if str(line["logger"]).startswith(("interfaces.", "application."))]


def of_requests(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["logger"] == access_log.__name__]


@pytest.mark.requirement("G2")
async def test_health_checks_and_requests_that_succeed_are_silent_at_info_and_one_line_each_at_debug() -> None:
    async with serving() as service:

        async def requests() -> None:
            for path in ("/health/live", "/health/ready", "/v1/agents", "/v1/agents?limit=1"):
                assert (await service.call("GET", path)).status_code == 200

        with json_log() as silent:
            await requests()
        with json_log("debug") as told:
            await requests()
    assert silent == []
    assert [(line["path"], line["status"], line["level"]) for line in of_requests(told)] == [
        ("/health/live", 200, "debug"),
        ("/health/ready", 200, "debug"),
        ("/v1/agents", 200, "debug"),
        ("/v1/agents", 200, "debug"),
    ]


@pytest.mark.requirement("G2")
async def test_a_fault_of_ours_is_one_line_with_ids_reference_and_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: ListAgents, *_: object, **__: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(ListAgents, "execute", broken)
    async with serving() as service:
        with json_log() as lines:
            problem = (await service.call("GET", "/v1/agents")).json()
    [line] = lines
    assert (line["level"], line["method"], line["path"]) == ("error", "GET", "/v1/agents")
    assert (line["reference"], line["organization_id"], line["key_id"]) == (problem["reference"], ORG, "key_admin")
    assert str(line["request_id"]).startswith("req_")
    assert "RuntimeError" in str(line["exception"])


@pytest.mark.requirement("G2")
async def test_requests_that_are_refused_have_a_line_with_what_refused_them_and_ids() -> None:
    run_id, thread_id = f"run_{'0' * 26}", f"thread_{'0' * 26}"
    async with serving() as service:
        with json_log() as lines:
            await service.call(
                "POST", "/v1/agents", json={"name": "guide", "model": MODEL}, token=token_of(Role.VIEWER)
            )
            await service.call("GET", "/v1/agents", token=None)
            await service.call("GET", f"/v1/runs/{run_id}")
            await service.call("GET", f"/v1/threads/{thread_id}")
            await service.call("POST", "/v1/agents", json={"name": ""})
            await service.call("GET", "/nowhere")
    found = [(line["level"], line["status"], line.get("path"), line.get("refusal")) for line in of_requests(lines)]
    assert found == [
        ("warning", 403, "/v1/agents", "role_insufficient"),
        ("warning", 401, "/v1/agents", "token_missing"),
        ("info", 404, "/v1/runs/{run_id}", "run_not_found"),
        ("info", 404, "/v1/threads/{thread_id}", "thread_not_found"),
        ("info", 422, "/v1/agents", "body_invalid"),
        ("info", 404, None, None),
    ]
    refused, unknown, of_run, of_thread, *_ = lines
    assert (refused["organization_id"], refused["key_id"]) == (ORG, "key_viewer")
    assert "organization_id" not in unknown
    assert (of_run["run_id"], of_thread["thread_id"]) == (run_id, thread_id)
    assert len({line["request_id"] for line in lines}) == len(lines)


@pytest.mark.requirement("G2")
async def test_a_probe_of_a_service_that_is_not_ready_is_a_warning() -> None:
    async with serving() as service:
        service.readiness.missing = (Obstacle(part="database", detail="Away."),)
        with json_log() as lines:
            await service.call("GET", "/health/ready", token=None)
    assert [(line["level"], line["status"]) for line in lines] == [("warning", 503)]


@pytest.mark.requirement("G2")
async def test_a_slow_request_is_one_line_but_not_a_wait_or_a_stream_whose_client_chose_to_wait() -> None:
    async with serving(EACH_IS_SLOW) as service:
        await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
        with json_log() as lines:
            await service.call("GET", "/v1/agents")
            run = (await service.call("POST", "/v1/runs/wait", json={"agent": "guide", "input": "hi"})).json()["run"]
            await service.call("GET", f"/v1/runs/{run['id']}/wait")
            await Conversation(service.app, "GET", f"/v1/runs/{run['id']}/stream").hold()
    [line] = of_requests(lines)
    assert (line["event"], line["level"], line["path"], line["status"]) == ("slow request", "info", "/v1/agents", 200)
    assert isinstance(line["duration_ms"], float)


@pytest.mark.requirement("G2", "F5")
async def test_a_slow_call_through_the_gateway_is_one_line_with_session_and_tool() -> None:
    async with serving(EACH_IS_SLOW) as service:
        await an_agent(service)
        caller = await opened(service)
        with json_log() as lines:
            await caller.modern("tools/call", {"name": ECHO, "arguments": {}})
            await caller.modern("tools/call", {"name": SECRET, "arguments": {}})
    call, of_no_tool = lines
    assert (call["event"], call["path"], call["tool"], call["organization_id"]) == ("slow request", "/mcp", ECHO, ORG)
    assert str(call["gateway_session_id"]).startswith("gws_")
    assert "tool" not in of_no_tool
    assert SECRET not in str(lines)


@pytest.mark.requirement("G2", "F5")
async def test_a_refusal_by_the_gateway_is_logged_as_what_it_is_whatever_its_status() -> None:
    async with serving() as service:
        caller = Caller(service=service, token="dgs_of-nobody")
        of_no_agent = Caller(service=service, token=token_of(Role.RUNNER), query="?agent=nowhere")
        with json_log() as lines:
            assert (await caller.modern("tools/list")).status_code == 401
            assert (await of_no_agent.modern("tools/list")).status_code == 200
    assert [(line["level"], line["status"], line["refusal"]) for line in lines] == [
        ("warning", 401, "token_invalid"),
        ("info", 200, "agent_not_found"),
    ]


@pytest.mark.requirement("G2", "B12")
async def test_what_a_path_a_query_or_a_body_holds_is_in_no_line() -> None:
    async with serving(EACH_IS_SLOW) as service:
        with json_log("debug") as lines:
            await service.call("GET", f"/v1/agents/{SECRET}")
            await service.call("GET", f"/v1/runs/{SECRET}")
            await service.call("GET", f"/{SECRET}")
            await service.call("GET", f"/v1/agents?token={SECRET}")
            await service.call("GET", f"/v1/agents?{SECRET}=1", token=SECRET)
            await service.call("POST", "/v1/agents", json={"name": SECRET, "model": MODEL})
            await service.call("POST", "/mcp", json={SECRET: SECRET}, token=SECRET)
    assert len(of_requests(lines)) == 7
    assert SECRET not in json.dumps(lines)


@pytest.mark.requirement("G2")
async def test_a_flood_of_requests_without_a_key_writes_a_bounded_number_of_lines_and_hides_no_other(
    mocker: MockerFixture,
) -> None:
    # The flood is over before the window is, however long it takes.
    mocker.patch(
        f"{access_log.__name__}.LineBudget", side_effect=lambda **given: LineBudget(**{**given, "window_s": 3_600.0})
    )
    async with serving() as service:
        with json_log() as lines:
            for number in range(200):
                await service.call("GET", "/v1/agents" if number % 2 else "/v1/runs", token=None)
            await service.call("GET", "/nowhere")
        with json_log("debug") as others:
            await service.call("GET", "/v1/agents", token=None)
    assert [line["status"] for line in lines].count(401) == access_log.LINES
    assert lines[-1]["status"] == 404
    assert [line["level"] for line in of_requests(others)] == ["debug"]


async def test_a_stream_is_logged_when_it_has_ended() -> None:
    async with serving() as service:
        await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
        run = (await service.call("POST", "/v1/runs/wait", json={"agent": "guide", "input": "hi"})).json()["run"]
        with json_log("debug") as lines:
            await Conversation(service.app, "GET", f"/v1/runs/{run['id']}/stream").hold()
    [line] = of_requests(lines)
    assert (line["path"], line["status"], line["run_id"]) == ("/v1/runs/{run_id}/stream", 200, run["id"])
