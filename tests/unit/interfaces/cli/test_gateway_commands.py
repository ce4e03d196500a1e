"""`dragoman gateway`."""

import json
import tomllib

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.client_configs import CLIENTS
from interfaces.http.gateway_sessions.views import GatewaySessionView
from tests.unit.interfaces.cli.fake_service import FakeService, whole

SESSION = whole(
    GatewaySessionView,
    {
        "id": "gws_1",
        "agent_id": "agt_1",
        "run_id": None,
        "thread_id": "thr_1",
        "names": "namespaced",
        "created_by": "key_1",
        "created_at": "2026-01-01T12:00:00Z",
        "expires_at": "2026-01-01T13:00:00Z",
        "revoked_at": None,
    },
)
OPENED: JsonObject = {**SESSION, "token": "dgs_secret", "url": "http://127.0.0.1:8321/mcp"}


@pytest.mark.requirement("F5")
def test_an_opened_session_prints_its_token_alone_on_stdout() -> None:
    service = FakeService().on("POST", "/v1/gateway-sessions", dict(OPENED))
    outcome = service.run("gateway", "open", "--agent", "researcher", "--ttl", "60", "--original-names")
    assert outcome.exit_code == 0
    assert service.sent("POST", "/v1/gateway-sessions") == [
        {"agent_id": "researcher", "ttl_s": 60, "names": "original"}
    ]
    assert outcome.out.strip() == "dgs_secret"
    assert "http://127.0.0.1:8321/mcp" in outcome.err


@pytest.mark.requirement("F5")
def test_a_session_of_a_run_is_opened_and_printed_as_json() -> None:
    service = FakeService().on("POST", "/v1/gateway-sessions", dict(OPENED))
    outcome = service.run("gateway", "open", "--run", "run_1", "--json")
    assert service.sent("POST", "/v1/gateway-sessions") == [{"run_id": "run_1"}]
    assert json.loads(outcome.out) == OPENED


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("nodes", [(), ("weather", "news")])
def test_a_session_of_nodes_of_a_workflow_run_is_opened(nodes: tuple[str, ...]) -> None:
    service = FakeService().on("POST", "/v1/gateway-sessions", {**OPENED, "workflow_run_id": "wfr_1"})
    given = [argument for node in nodes for argument in ("--node", node)]
    assert service.run("gateway", "open", "--workflow-run", "wfr_1", *given).exit_code == 0
    assert service.sent("POST", "/v1/gateway-sessions") == [{"workflow_run_id": "wfr_1", "node_ids": [*nodes]}]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--agent", "a", "--run", "run_1"),
        ("--run", "run_1", "--workflow-run", "wfr_1"),
        ("--agent", "a", "--node", "n"),
    ],
    ids=["neither", "both", "two runs", "nodes of an agent"],
)
def test_a_session_is_of_an_agent_or_of_a_run(arguments: tuple[str, ...]) -> None:
    service = FakeService()
    assert service.run("gateway", "open", *arguments).exit_code == 2
    assert service.requests == []


def test_sessions_are_listed_and_revoked() -> None:
    ended: JsonObject = {**SESSION, "id": "gws_2", "revoked_at": "2026-01-01T12:30:00Z"}
    service = FakeService().on("GET", "/v1/gateway-sessions", {"data": [SESSION, ended], "next_cursor": None})
    out = service.run("gateway", "list").out
    assert "gws_1" in out
    assert "revoked" in out
    service = FakeService().on("DELETE", "/v1/gateway-sessions/gws_1", httpx.Response(204))
    assert service.run("gateway", "revoke", "gws_1").exit_code == 0


URL = "http://127.0.0.1:8321/mcp"
HEADERS: JsonObject = {"Authorization": "Bearer dgs_secret"}
STARTED: JsonObject = {
    "command": "npx",
    "args": ["-y", "mcp-remote", URL, "--header", "Authorization:${AUTH_HEADER}"],
    "env": {"AUTH_HEADER": "Bearer dgs_secret"},
}
OPENCODE: JsonObject = {"type": "remote", "oauth": False, "url": URL}
FILES: dict[str, JsonObject] = {
    "claude-code": {"mcpServers": {"dragoman": {"type": "http", "url": URL, "headers": {**HEADERS}}}},
    "claude-desktop": {"mcpServers": {"dragoman": {**STARTED}}},
    "cline": {"mcpServers": {"dragoman": {"type": "streamableHttp", "url": URL, "headers": {**HEADERS}}}},
    "codex": {"mcp_servers": {"dragoman": {"url": URL, "http_headers": {**HEADERS}}}},
    "cursor": {"mcpServers": {"dragoman": {"url": URL, "headers": {**HEADERS}}}},
    "gemini-cli": {"mcpServers": {"dragoman": {"httpUrl": URL, "headers": {**HEADERS}}}},
    "mcp-remote": {"mcpServers": {"dragoman": {**STARTED}}},
    "opencode": {"mcp": {"servers": {"dragoman": {**OPENCODE, "headers": {**HEADERS}}}}},
    "opencode-v1": {"mcp": {"dragoman": {**OPENCODE, "enabled": True, "headers": {**HEADERS}}}},
    "vscode": {"servers": {"dragoman": {"type": "http", "url": URL, "headers": {**HEADERS}}}},
    "windsurf": {"mcpServers": {"dragoman": {"serverUrl": URL, "headers": {**HEADERS}}}},
    "zed": {"context_servers": {"dragoman": {"url": URL, "headers": {**HEADERS}}}},
}


@pytest.mark.requirement("X8")
@pytest.mark.parametrize("client", CLIENTS)
def test_the_configuration_of_a_client_is_printed_alone_on_stdout(client: str) -> None:
    service = FakeService().on("POST", "/v1/gateway-sessions", dict(OPENED))

    outcome = service.run("gateway", "config", "--client", client, "--agent", "researcher", "--ttl", "60")

    read = tomllib.loads if client == "codex" else json.loads
    assert read(outcome.out) == FILES[client]
    assert CLIENTS[client].file in " ".join(outcome.err.split())
    assert service.sent("POST", "/v1/gateway-sessions") == [{"agent_id": "researcher", "ttl_s": 60}]


@pytest.mark.requirement("X7", "X8")
def test_a_client_may_be_configured_to_search_for_tools() -> None:
    service = FakeService().on("POST", "/v1/gateway-sessions", dict(OPENED))
    outcome = service.run("gateway", "config", "--client", "cursor", "--agent", "a", "--tool-search")
    assert json.loads(outcome.out)["mcpServers"]["dragoman"]["url"] == f"{URL}?tool_search=always"


@pytest.mark.requirement("X8")
def test_a_gateway_elsewhere_without_tls_is_allowed_to_mcp_remote() -> None:
    away = {**OPENED, "url": "http://agents.internal:8321/mcp"}
    service = FakeService().on("POST", "/v1/gateway-sessions", away)
    outcome = service.run("gateway", "config", "--client", "mcp-remote", "--agent", "a")
    assert json.loads(outcome.out)["mcpServers"]["dragoman"]["args"][-1] == "--allow-http"


@pytest.mark.requirement("X8")
def test_without_a_running_service_no_session_is_left_behind() -> None:
    service = FakeService().on("POST", "/v1/gateway-sessions", {**OPENED, "url": None})
    service.on("DELETE", "/v1/gateway-sessions/gws_1", httpx.Response(204))
    outcome = service.run("gateway", "config", "--client", "cursor", "--agent", "a")
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "dragoman serve" in outcome.err
    assert [request.method for request in service.requests] == ["POST", "DELETE"]


@pytest.mark.requirement("X8")
def test_an_unknown_client_is_refused_before_a_session_is_opened() -> None:
    service = FakeService()
    assert service.run("gateway", "config", "--client", "emacs", "--agent", "a").exit_code == 2
    assert service.requests == []
