"""Requests that cannot be taken: each gets a problem document with a code, in bounded time, and
changes nothing."""

import logging
from collections.abc import AsyncGenerator

import pytest

from application.agents.queries import ListAgents
from interfaces.http.bodies import MAX_JSON_BYTES
from interfaces.http.query_names import query_names
from tests.composition import MODEL
from tests.integration.http.service import Conversation, Service, paths_of, problem_of

AGENT: dict[str, object] = {"name": "guide", "model": MODEL}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{not json", id="not json"),
        pytest.param(b'{"name": "a", }', id="trailing comma"),
        pytest.param(b'{"name": "a"} {}', id="two documents"),
        pytest.param(b'{"name": NaN}', id="not a number"),
        pytest.param(b"\xff\xfe", id="not utf-8"),
        pytest.param(b'{"name": "\xff"}', id="a text that is not utf-8"),
        pytest.param(b'{"name": "\\ud800"}', id="half a character"),
        pytest.param(b"[" * 100_000, id="nested without end"),
    ],
)
async def test_a_body_that_is_not_json_is_400(service: Service, content: bytes) -> None:
    problem_of(await service.call("POST", "/v1/agents", content=content), 400, "json_malformed")
    assert service.state.agents == {}


async def test_a_missing_body_is_400(service: Service) -> None:
    problem_of(await service.call("POST", "/v1/agents"), 400, "body_missing")


@pytest.mark.parametrize("body", [[], "text", 7, True])
async def test_a_body_that_is_not_an_object_is_422(service: Service, body: object) -> None:
    assert paths_of(problem_of(await service.call("POST", "/v1/agents", json=body), 422, "body_invalid")) == [""]


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        pytest.param({"instuctions": "x"}, ["instuctions"], id="typo"),
        pytest.param({"limits": {"max_turn": 1}}, ["limits.max_turn"], id="typo further in"),
        pytest.param({"limits": {"max_turns": 0}}, ["limits.max_turns"], id="too small"),
        pytest.param({"limits": {"max_turns": 10**9}}, ["limits.max_turns"], id="too large"),
        pytest.param({"limits": {"timeout_s": 1e300}}, ["limits.timeout_s"], id="longer than anything"),
        pytest.param({"name": "n" * 201}, ["name"], id="long name"),
        pytest.param({"tools": ["send_email"] * 1_001}, ["tools"], id="long list"),
        pytest.param({"limits": {"max_turns": "5"}}, ["limits.max_turns"], id="number as text"),
        pytest.param({"limits": {"max_turns": 1.5}}, ["limits.max_turns"], id="fraction"),
        pytest.param({"enabled": "yes"}, ["enabled"], id="truth as text"),
        pytest.param({"tools": ["send_email", 7]}, ["tools.1"], id="wrong entry"),
        pytest.param({"tools": "send_email"}, ["tools"], id="text for a list"),
        pytest.param({"name": None}, ["name"], id="null"),
        pytest.param({"version": 3, "id": "agt_1"}, ["version", "id"], id="fields that are ours"),
        # Names of the handler's own parameters are ordinary unknown fields to a client.
        pytest.param({"create_agent": 1, "request": 2}, ["create_agent", "request"], id="names of ours"),
    ],
)
async def test_every_fault_of_a_body_is_named_with_its_path(
    service: Service, change: dict[str, object], paths: list[str]
) -> None:
    response = await service.call("POST", "/v1/agents", json={**AGENT, **change})
    assert paths_of(problem_of(response, 422, "body_invalid")) == paths
    assert service.state.agents == {}


async def test_all_faults_are_reported_at_once(service: Service) -> None:
    response = await service.call("POST", "/v1/agents", json={"nam": "a", "enabled": 1, "limits": []})
    assert sorted(paths_of(problem_of(response, 422, "body_invalid"))) == ["enabled", "limits", "model", "nam", "name"]
    assert "did you mean 'name'?" in response.text


async def test_an_unknown_field_of_a_part_is_compared_with_the_fields_of_that_part(service: Service) -> None:
    body = {**AGENT, "model_settings": {"verbositty": "low"}, "tool_policies": {"time": {"decison": "deny"}}}
    response = await service.call("POST", "/v1/agents", json=body)
    assert paths_of(problem_of(response, 422, "body_invalid")) == [
        "tool_policies.time.decison",
        "model_settings.verbositty",
    ]
    assert "is not a known field; did you mean 'verbosity'?" in response.text
    assert "did you mean 'tool_policies'?" not in response.text


async def test_values_are_not_repeated_in_errors(service: Service) -> None:
    body = {"slug": "x", "kind": "custom", "command": "c", "env": {"TOKEN": ["s3cret"]}, "heders": {"k": "s3cret"}}
    response = await service.call("POST", "/v1/mcp-servers", json=body)
    assert sorted(paths_of(problem_of(response, 422, "body_invalid"))) == ["env.TOKEN", "heders"]
    assert "s3cret" not in response.text


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=many", "limit"),
        ("cursor=nonsense", "cursor"),
    ],
)
async def test_a_page_that_cannot_be_is_refused(service: Service, query: str, path: str) -> None:
    await service.call("POST", "/v1/agents", json=AGENT)
    run = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hi"})).json()
    for listing in ("/v1/agents", f"/v1/runs/{run['id']}/events"):
        response = await service.call("GET", f"{listing}?{query}")
        code = "cursor_invalid" if path == "cursor" else "parameters_invalid"
        assert paths_of(problem_of(response, 422, code)) == [path]


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/v1/runs?status=done", "status"),
        ("/v1/audit-events?since=yesterday", "since"),
        ("/v1/runs/run_1/wait?timeout_s=-1", "timeout_s"),
        ("/v1/runs/run_1/events?after=-1", "after"),
    ],
)
async def test_a_parameter_that_cannot_be_is_refused(service: Service, path: str, fault: str) -> None:
    assert paths_of(problem_of(await service.call("GET", path), 422, "parameters_invalid")) == [fault]


async def test_a_body_that_says_it_is_too_large_is_refused_unread(service: Service) -> None:
    response = await service.call("POST", "/v1/agents", content=b"x" * (MAX_JSON_BYTES + 1))
    problem_of(response, 413, "body_too_large")


async def test_a_body_that_grows_too_large_is_read_no_further(service: Service) -> None:
    sent = 0

    async def fifty_megabytes() -> AsyncGenerator[bytes, None]:
        nonlocal sent
        for _ in range(50):
            sent += 1
            yield b"x" * 1024 * 1024

    conversation = Conversation(service.app, "POST", "/v1/agents", body=fifty_megabytes())
    await conversation.hold()
    assert (conversation.status, sent) == (413, 11)


async def test_a_path_that_does_not_exist_is_404(service: Service) -> None:
    for path in ("/v1", "/v1/agent", "/v2/agents"):
        problem_of(await service.call("GET", path), 404, "route_not_found")


async def test_a_method_that_does_not_exist_is_405_and_says_which_do(service: Service) -> None:
    response = await service.call("PUT", "/v1/agents")
    problem_of(response, 405, "method_not_allowed")
    assert {"GET", "POST"} <= set(response.headers["allow"].split(", "))


async def test_a_fault_of_ours_shows_a_reference_that_the_log_has_and_nothing_else(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: ListAgents, command: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(ListAgents, "execute", broken)
    with caplog.at_level(logging.ERROR):
        response = await service.call("GET", "/v1/agents")
    problem = problem_of(response, 500, "internal_error")
    assert "hunter2" not in response.text
    assert "RuntimeError" not in response.text
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.__dict__["reference"] == problem["reference"]
    assert record.__dict__["path"] == "/v1/agents"
    assert record.exc_info is not None


LISTS = [
    "/v1/agents",
    "/v1/api-keys",
    "/v1/approvals",
    "/v1/audit-events",
    "/v1/gateway-sessions",
    "/v1/mcp-servers",
    "/v1/model-providers",
    "/v1/runs",
    "/v1/schedules",
    "/v1/secrets",
    "/v1/threads",
    "/v1/tools",
    "/v1/usage",
    "/v1/workflow-runs",
    "/v1/workflows",
]


@pytest.mark.parametrize("path", LISTS)
async def test_a_query_parameter_that_a_list_does_not_have_is_422_and_named(service: Service, path: str) -> None:
    refused = await service.call("GET", f"{path}?sttus=failed&limt=1&sttus=x")
    assert paths_of(problem_of(refused, 422, "parameters_invalid")) == ["limt", "sttus"]
    assert (await service.call("GET", f"{path}?")).status_code == 200


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("/v1/runs?status=done", "status"),
        ("/v1/workflow-runs?status=done", "status"),
        ("/v1/approvals?state=done", "state"),
        ("/v1/usage?by=year", "by"),
        ("/v1/runs?limit=many", "limit"),
        ("/v1/audit-events?since=yesterday", "since"),
    ],
)
async def test_a_query_parameter_of_no_known_value_is_422_and_named(service: Service, query: str, path: str) -> None:
    assert paths_of(problem_of(await service.call("GET", query), 422, "parameters_invalid")) == [path]


async def test_requests_with_a_query_leave_nothing_in_memory(service: Service) -> None:
    await service.call("GET", "/v1/threads?limit=1")
    known = query_names.cache_info().currsize
    for limit in range(1, 10):
        await service.call("GET", f"/v1/threads?limit={limit}")
    assert query_names.cache_info().currsize == known


async def test_a_route_that_takes_no_query_refuses_one_and_does_nothing(service: Service) -> None:
    refused = await service.call("POST", "/v1/agents?dry_run=true", json=AGENT)
    assert paths_of(problem_of(refused, 422, "parameters_invalid")) == ["dry_run"]
    assert service.state.agents == {}
    assert (await service.call("GET", "/v1/runs?sttus=failed", token="dgm_nobody")).status_code == 401


async def test_tools_come_whole_or_in_pages(service: Service) -> None:
    whole = (await service.call("GET", "/v1/tools")).json()
    assert whole["next_cursor"] is None
    found: list[object] = []
    query: str | None = "?limit=1"
    while query:
        page = (await service.call("GET", f"/v1/tools{query}")).json()
        assert len(page["data"]) == 1
        found += page["data"]
        query = page["next_cursor"] and f"?limit=1&cursor={page['next_cursor']}"
    assert found == whole["data"]
    assert len(found) > 1
    for cursor in ("x", "-1", "9" * 100):
        refused = await service.call("GET", f"/v1/tools?cursor={cursor}")
        assert paths_of(problem_of(refused, 422, "cursor_invalid")) == ["cursor"]
