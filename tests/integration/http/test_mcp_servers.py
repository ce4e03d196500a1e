"""MCP servers over HTTP."""

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from tests.integration.http.service import Service, paths_of, problem_of

FILES: dict[str, object] = {
    "slug": "files",
    "kind": "custom",
    "command": "files-server",
    "args": ["--root", "."],
    "env": {"TOKEN": "s3cret"},
    "isolation": "shared",
    "elicitation": "ask",
    "sampling": "pass",
    "network": "allowlist",
    "network_hosts": ["api.example.com"],
}


async def test_a_server_is_registered_read_changed_and_deleted(service: Service) -> None:
    created = await service.call("POST", "/v1/mcp-servers", json=FILES)
    server = created.json()
    assert (created.status_code, created.headers["etag"]) == (201, '"1"')
    assert created.headers["location"] == f"/v1/mcp-servers/{server['id']}"
    assert (
        server.items()
        >= {**FILES, "env": {"TOKEN": "[hidden]"}, "trusted": False, "timeout_s": 30.0, "roots": "decline"}.items()
    )
    assert (await service.call("GET", "/v1/mcp-servers/files")).json() == server
    assert (await service.call("GET", "/v1/mcp-servers")).json() == {"data": [server], "next_cursor": None}

    changed = await service.call(
        "PATCH",
        "/v1/mcp-servers/files",
        json={"timeout_s": 5, "elicitation": "decline", "roots": "pass"},
        headers={"If-Match": '"1"'},
    )
    assert (
        changed.json().items()
        >= {"timeout_s": 5.0, "elicitation": "decline", "roots": "pass", "revision": 2, "slug": "files"}.items()
    )
    problem_of(
        await service.call("PATCH", "/v1/mcp-servers/files", json={"timeout_s": 6}, headers={"If-Match": '"1"'}),
        412,
        "version_conflict",
    )
    assert (await service.call("DELETE", "/v1/mcp-servers/files")).status_code == 204
    problem_of(await service.call("GET", "/v1/mcp-servers/files"), 404, "mcp_server_not_found")


@pytest.mark.requirement("B12")
async def test_secrets_go_in_and_never_come_out(service: Service) -> None:
    remote = {"slug": "tickets", "kind": "http", "url": "https://mcp.example.com", "headers": {"X-Key": "s3cret"}}
    answers = [
        await service.call("POST", "/v1/mcp-servers", json=FILES),
        await service.call("POST", "/v1/mcp-servers", json=remote),
        await service.call("PATCH", "/v1/mcp-servers/files", json={"env": {"TOKEN": "s3cret2", "MODE": "s3cret3"}}),
        await service.call("POST", "/v1/mcp-servers/files/test"),
        await service.call("POST", "/v1/mcp-servers/test", json=FILES),
        *[
            await service.call("GET", f"/v1/{path}")
            for path in ("mcp-servers", "mcp-servers/files", "mcp-servers/tickets", "audit-events")
        ],
    ]
    assert all(answer.is_success for answer in answers)
    assert not [answer.text for answer in answers if "s3cret" in answer.text]


async def test_a_server_that_was_read_can_be_sent_back(service: Service) -> None:
    server_id = (await service.call("POST", "/v1/mcp-servers", json=FILES)).json()["id"]
    read = (await service.call("GET", "/v1/mcp-servers/files")).json()
    await service.call("PATCH", "/v1/mcp-servers/files", json={"env": read["env"], "args": ["--all"]})
    assert service.state.servers[server_id].config.env == {"TOKEN": "s3cret"}
    assert service.state.servers[server_id].config.args == ("--all",)


async def test_the_placeholder_is_no_value_for_a_new_server(service: Service) -> None:
    response = await service.call("POST", "/v1/mcp-servers", json={**FILES, "env": {"TOKEN": "[hidden]"}})
    assert paths_of(problem_of(response, 422, "mcp_server_invalid")) == ["env.TOKEN"]


async def test_remote_servers_are_shared_and_started_ones_belong_to_a_run_by_default(service: Service) -> None:
    remote = {"slug": "tickets", "kind": "http", "url": "https://mcp.example.com"}
    started = {"slug": "clock", "kind": "custom", "command": "clock"}
    isolation = [
        (await service.call("POST", "/v1/mcp-servers", json=body)).json()["isolation"] for body in (remote, started)
    ]
    assert isolation == ["shared", "run"]


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        pytest.param({"slug": "No Slug"}, ["slug"], id="slug"),
        pytest.param({"command": None}, ["command"], id="no command"),
        pytest.param({"url": "https://mcp.example.com"}, ["url"], id="url of a started server"),
        pytest.param(
            {"kind": "http"},
            ["url", "command", "args", "env", "network", "network_hosts"],
            id="a remote server with a command",
        ),
        pytest.param({"path": "server"}, ["path"], id="copied from somewhere"),
        pytest.param({"kind": "npm"}, ["package"], id="an npm server without a package"),
    ],
)
async def test_settings_that_do_not_fit_are_refused_with_their_paths(
    service: Service, change: dict[str, object], paths: list[str]
) -> None:
    response = await service.call("POST", "/v1/mcp-servers", json={**FILES, **change})
    assert paths_of(problem_of(response, 422, "mcp_server_invalid")) == paths


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("field", "allowed", "too_much"),
    [
        ("timeout_s", 86_400, 86_401),
        ("idle_timeout_s", 86_400, 1e300),
        ("max_response_bytes", 64 * 1024**2, 64 * 1024**2 + 1),
        ("max_concurrency", 1_000, 1_001),
    ],
)
async def test_a_bound_has_a_least_and_a_greatest_value(
    service: Service, field: str, allowed: float, too_much: float
) -> None:
    for value in (0, -1, too_much):
        for path in ("/v1/mcp-servers", "/v1/mcp-servers/test"):
            response = await service.call("POST", path, json={**FILES, field: value})
            assert paths_of(problem_of(response, 422, "body_invalid")) == [field], (path, value)
    assert service.state.servers == {}

    created = await service.call("POST", "/v1/mcp-servers", json={**FILES, field: allowed})
    assert (created.status_code, created.json()[field]) == (201, allowed)
    response = await service.call("PATCH", "/v1/mcp-servers/files", json={field: too_much})
    assert paths_of(problem_of(response, 422, "body_invalid")) == [field]


async def test_a_test_shows_what_the_server_offers(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    for path, body in (("/v1/mcp-servers/files/test", None), ("/v1/mcp-servers/test", FILES)):
        response = await service.call("POST", path, json=body)
        assert response.status_code == 200
        result = response.json()
        assert result.items() >= {"ok": True, "error": None, "protocol_version": "2026-07-28"}.items()
        assert result["server_info"] == {"name": "files"}
        assert [(tool["name"], tool["model_name"]) for tool in result["tools"]] == [("echo", "mcp__files__echo")]
        assert result["latency_ms"] >= 0


async def test_a_test_of_a_broken_server_is_an_answer(service: Service) -> None:
    service.connections.servers["files"].unreachable = McpFailure(
        McpFailureKind.NOT_CONNECTED, "The command exited.", stderr="no such file"
    )
    response = await service.call("POST", "/v1/mcp-servers/test", json={**FILES})
    assert response.status_code == 200
    assert (
        response.json().items()
        >= {
            "ok": False,
            "tools": [],
            "server_info": None,
            "error": {"code": "not_connected", "detail": "The command exited.", "stderr": "no such file"},
        }.items()
    )


async def test_a_server_is_connected_refreshed_and_disconnected(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    never = (await service.call("GET", "/v1/mcp-servers/files/tools")).json()
    assert never == {"data": [], "next_cursor": None, "skipped": [], "taken_at": None, "protocol_version": None}
    connected = (await service.call("POST", "/v1/mcp-servers/files/connect")).json()
    assert connected.items() >= {"state": "connected", "tool_count": 1, "protocol_version": "2026-07-28"}.items()
    refreshed = (await service.call("POST", "/v1/mcp-servers/files/refresh")).json()
    assert refreshed == (await service.call("GET", "/v1/mcp-servers/files/tools")).json()
    assert [tool["name"] for tool in refreshed["data"]] == ["echo"]
    assert (await service.call("POST", "/v1/mcp-servers/files/disconnect")).json()["state"] == "disconnected"
    assert (await service.call("GET", "/v1/mcp-servers/files/status")).json()["state"] == "disconnected"
    assert (await service.call("GET", "/v1/mcp-servers/files/logs")).json() == {"text": "started\n"}


async def test_a_server_that_cannot_be_listed_is_unavailable(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    service.connections.servers["files"].unreachable = McpFailure(McpFailureKind.TIMEOUT, "No answer in 10 s.")
    problem = problem_of(await service.call("POST", "/v1/mcp-servers/files/refresh"), 503, "mcp_server_unavailable")
    assert problem["reason"] == "timeout"
    assert (await service.call("GET", "/v1/mcp-servers/files/status")).json()["state"] == "error"


async def test_tools_are_listed_for_everybody_and_for_an_agent(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    everything = (await service.call("GET", "/v1/tools")).json()
    assert [(tool["name"], tool["server"], tool["health"]) for tool in everything["data"]] == [
        ("create_calendar_event", None, "available"),
        ("send_email", None, "available"),
        ("mcp__files__echo", "files", "connected"),
    ]
    echo = everything["data"][2]
    assert (echo["available"], echo["age_s"] >= 0, echo["as_of"] is None) == (True, True, False)
    agent = {"name": "guide", "model": "scripted:demo.yaml", "mcp_servers": ["files"]}
    await service.call("POST", "/v1/agents", json=agent)
    of_agent = (await service.call("GET", "/v1/tools?agent=guide")).json()
    assert [tool["name"] for tool in of_agent["data"]] == ["mcp__files__echo"]
    problem_of(await service.call("GET", "/v1/tools?agent=nobody"), 404, "agent_not_found")


@pytest.mark.requirement("B5")
async def test_only_the_named_tools_of_a_server_are_used_and_the_others_are_named_with_the_reason(
    service: Service,
) -> None:
    created = await service.call("POST", "/v1/mcp-servers", json={**FILES, "tools": ["read*"]})
    assert created.json()["tools"] == ["read*"]
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    assert "mcp__files__echo" not in (await service.call("GET", "/v1/tools")).text
    listed = (await service.call("GET", "/v1/mcp-servers/files/tools")).json()
    assert (listed["data"], [tool["name"] for tool in listed["skipped"]]) == ([], ["echo"])
    changed = await service.call("PATCH", "/v1/mcp-servers/files", json={"tools": None})
    assert changed.json()["tools"] is None
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    assert "mcp__files__echo" in (await service.call("GET", "/v1/tools")).text


@pytest.mark.requirement("B7", "B10")
async def test_a_server_s_strategy_and_rate_are_kept_and_changed(service: Service) -> None:
    limited = {**FILES, "on_connection_loss": "unregister", "rate_limit": {"calls": 60, "per_s": 30.5}}
    created = (await service.call("POST", "/v1/mcp-servers", json=limited)).json()
    assert created.items() >= {"on_connection_loss": "unregister", "rate_limit": {"calls": 60, "per_s": 30.5}}.items()
    faster = {"rate_limit": {"calls": 90, "per_s": 30.5}}
    changed = (await service.call("PATCH", "/v1/mcp-servers/files", json=faster)).json()
    assert (changed["rate_limit"], changed["on_connection_loss"]) == (faster["rate_limit"], "unregister")
    unlimited = (await service.call("PATCH", "/v1/mcp-servers/files", json={"rate_limit": None})).json()
    assert unlimited["rate_limit"] is None
    again = (await service.call("PATCH", "/v1/mcp-servers/files", json={"timeout_s": 9})).json()
    assert (again["rate_limit"], again["on_connection_loss"]) == (None, "unregister")
    private = await service.call("PATCH", "/v1/mcp-servers/files", json={"isolation": "run"})
    assert paths_of(problem_of(private, 422, "mcp_server_invalid")) == ["on_connection_loss"]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"rate_limit": {"calls": 0, "per_s": 1}}, "rate_limit.calls"),
        ({"rate_limit": {"calls": 1, "per_s": 0}}, "rate_limit.per_s"),
        ({"rate_limit": {"calls": 1}}, "rate_limit.per_s"),
        ({"rate_limit": "60/min"}, "rate_limit"),
        ({"on_connection_loss": "ignore"}, "on_connection_loss"),
    ],
)
async def test_limits_that_make_no_sense_are_refused_with_their_paths(
    service: Service, wrong: dict[str, object], path: str
) -> None:
    answer = await service.call("POST", "/v1/mcp-servers", json={**FILES, **wrong})
    assert paths_of(problem_of(answer, 422, "body_invalid")) == [path]
