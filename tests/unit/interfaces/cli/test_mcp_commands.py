"""`dragoman mcp`."""

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.http.mcp_servers import views
from interfaces.http.mcp_servers.views import McpServerToolsView, McpServerView, PinnedToolView, ServerStatusView
from tests.unit.interfaces.cli.fake_service import FakeService, problem, whole

SERVER = whole(
    McpServerView,
    {
        "id": "mcp_1",
        "slug": "time",
        "kind": "custom",
        "command": "python",
        "args": ["-m", "a server"],
        "env": {"TOKEN": "[hidden]"},
        "url": None,
        "headers": {},
        "trusted": False,
        "isolation": "run",
        "timeout_s": 30.0,
        "enabled": True,
        "version": None,
        "revision": 1,
    },
)
TOOL = whole(
    PinnedToolView, {"name": "now", "model_name": "mcp__time__now", "description": "The time.\nNow.", "parameters": {}}
)


def test_a_command_is_registered_with_its_arguments_as_they_are() -> None:
    service = FakeService().on("POST", "/v1/mcp-servers", httpx.Response(201, json=SERVER))
    outcome = service.run(
        "mcp", "add", "time", "--env", "TOKEN=a=b", "--trusted", "--isolation", "thread", "--elicitation", "ask",
        "--sampling", "pass", "--roots", "decline", "--tool", "now", "--tool", "get_*",
        "--", "python", "-m", "mcp_server_time", "--help", "--json",
    )  # fmt: skip
    assert outcome.exit_code == 0
    assert service.sent("POST", "/v1/mcp-servers") == [
        {
            "slug": "time",
            "kind": "custom",
            "trusted": True,
            "command": "python",
            "args": ["-m", "mcp_server_time", "--help", "--json"],
            "env": {"TOKEN": "a=b"},
            "isolation": "thread",
            "elicitation": "ask",
            "sampling": "pass",
            "roots": "decline",
            "tools": ["now", "get_*"],
        }
    ]
    assert "dragoman mcp test time" in outcome.err
    assert "a=b" not in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("options", "network"),
    [
        (["--network", "none"], {"network": "none"}),
        (["--host", "a.example", "--host", "*.b.example"], {"network_hosts": ["a.example", "*.b.example"]}),
        (["--network", "allowlist", "--host", "a.example"], {"network_hosts": ["a.example"]}),
    ],
)
def test_a_command_is_registered_with_its_network(options: list[str], network: JsonObject) -> None:
    service = FakeService().on("POST", "/v1/mcp-servers", httpx.Response(201, json=SERVER))
    service.run("mcp", "add", "time", *options, "--", "python")
    (sent,) = service.sent("POST", "/v1/mcp-servers")
    assert isinstance(sent, dict)
    assert {name: sent[name] for name in ("network", "network_hosts") if name in sent} == {
        "network": "allowlist",
        **network,
    }


@pytest.mark.parametrize(("options", "kind"), [([], "http"), (["--kind", "sse"], "sse")])
def test_a_url_is_registered_with_its_headers(options: list[str], kind: str) -> None:
    service = FakeService().on("POST", "/v1/mcp-servers", SERVER)
    service.run("mcp", "add", "t", "--url", "https://x/mcp", "--header", "Authorization=Bearer a=", *options)
    assert service.sent("POST", "/v1/mcp-servers") == [
        {
            "slug": "t",
            "kind": kind,
            "trusted": False,
            "url": "https://x/mcp",
            "headers": {"Authorization": "Bearer a="},
        }
    ]


def test_a_wrong_entry_is_not_repeated_for_it_may_be_a_secret() -> None:
    outcome = FakeService().run("mcp", "add", "t", "--env", "hunter2", "--", "x")
    assert outcome.exit_code == 2
    assert "hunter2" not in outcome.err


def test_servers_are_listed_and_shown_without_their_secrets() -> None:
    status = whole(ServerStatusView, {"state": "unhealthy", "since": "2026-01-01T00:00:00Z", "last_error": "it\nbroke"})
    service = (
        FakeService()
        .on("GET", "/v1/mcp-servers", {"data": [SERVER], "next_cursor": None})
        .on("GET", "/v1/mcp-servers/time", SERVER)
        .on("GET", "/v1/mcp-servers/time/status", status)
        .on("GET", "/v1/mcp-servers/mcp_1/status", status)
    )
    [listed] = service.run("mcp", "list").out.splitlines()[1:]
    assert listed.split()[:2] == ["time", "unhealthy"]
    assert "python -m 'a server'" in listed
    shown = service.run("mcp", "show", "time").out
    assert "python -m 'a server'" in shown
    assert ["env", "TOKEN"] in [line.split() for line in shown.splitlines()]
    assert "unhealthy since" in shown
    assert "it broke" in shown
    assert service.run("mcp", "show", "time", "--json").json == {**SERVER, "status": status}


def test_a_server_that_works_is_exit_code_0() -> None:
    answer = whole(
        views.TestResultView,
        {
            "ok": True,
            "protocol_version": "2026-07-28",
            "server_info": {"name": "mcp-time"},
            "tools": [TOOL],
            "skipped": [{"name": "bad name", "reason": "illegal"}],
            "latency_ms": 412,
            "error": None,
        },
    )
    outcome = FakeService().on("POST", "/v1/mcp-servers/time/test", answer).run("mcp", "test", "time")
    assert outcome.exit_code == 0
    for shown in ("time works.", "2026-07-28", "mcp-time", "412 ms"):
        assert shown in outcome.out
    assert "bad name: illegal" in outcome.err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_server_that_does_not_work_is_exit_code_1_with_its_last_words(options: list[str]) -> None:
    error: JsonObject = {"code": "not_connected", "detail": "The command does not exist.", "stderr": "line 1\nline 2\n"}
    answer = whole(views.TestResultView, {"ok": False, "tools": [], "latency_ms": 3, "error": error})
    outcome = FakeService().on("POST", "/v1/mcp-servers/time/test", answer).run("mcp", "test", "time", *options)
    assert outcome.exit_code == 1
    for shown in ("not_connected", "The command does not exist.", "line 2"):
        assert shown in outcome.out
    assert options or "dragoman mcp logs time" in outcome.err


def test_a_server_for_an_older_sdk_is_shown_with_what_makes_it_work() -> None:
    words = "Traceback …\nAttributeError: 'Server' object has no attribute 'list_tools'\n"
    error: JsonObject = {"code": "not_connected", "detail": "It ended.", "stderr": words}
    answer = whole(views.TestResultView, {"ok": False, "tools": [], "latency_ms": 3, "error": error})
    outcome = FakeService().on("POST", "/v1/mcp-servers/time/test", answer).run("mcp", "test", "time")
    assert "mcp<2" in outcome.err


def test_tools_are_shown_as_last_seen_or_asked_for_anew() -> None:
    tools = whole(McpServerToolsView, {"data": [TOOL], "skipped": [], "taken_at": "2026-01-01T00:00:00Z"})
    service = (
        FakeService()
        .on("GET", "/v1/mcp-servers/time/tools", whole(McpServerToolsView, {}))
        .on("POST", "/v1/mcp-servers/time/refresh", tools)
    )
    assert "--refresh" in service.run("mcp", "tools", "time").err
    shown = service.run("mcp", "tools", "time", "--refresh").out
    assert shown.splitlines()[1].split() == ["now", "mcp__time__now", "approved", "The", "time.", "Now."]


@pytest.mark.parametrize(("text", "out"), [("a\nb\n", "a\nb\n"), ("", "")])
def test_logs_are_printed_as_they_are(text: JsonValue, out: str) -> None:
    assert FakeService().on("GET", "/v1/mcp-servers/time/logs", {"text": text}).run("mcp", "logs", "time").out == out


def test_a_server_is_removed() -> None:
    service = FakeService().on("DELETE", "/v1/mcp-servers/time", httpx.Response(204))
    assert service.run("mcp", "remove", "time").exit_code == 0


def test_a_slug_that_is_taken_is_exit_code_1() -> None:
    service = FakeService().on("POST", "/v1/mcp-servers", problem(409, "mcp_server_slug_taken", "The slug is taken."))
    assert service.run("mcp", "add", "time", "--", "x").exit_code == 1


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"command": None, "url": "https://x/mcp", "kind": "http"}, "https://x/mcp"),
        ({"command": None, "package": "mcp-server-git", "version": "2.0", "kind": "python"}, "mcp-server-git 2.0"),
    ],
)
def test_a_list_says_how_each_server_is_reached(changes: JsonObject, shown: str) -> None:
    service = FakeService().on("GET", "/v1/mcp-servers", {"data": [SERVER | changes], "next_cursor": None})
    assert shown in service.run("mcp", "list").out


@pytest.mark.requirement("B7", "B10")
def test_a_server_is_registered_with_its_strategy_and_its_rate() -> None:
    service = FakeService().on("POST", "/v1/mcp-servers", httpx.Response(201, json=SERVER))
    options = ("--on-connection-loss", "unregister", "--rate-limit", "60/30.5")
    assert service.run("mcp", "add", "t", "--url", "https://x/mcp", *options).exit_code == 0
    [sent] = service.sent("POST", "/v1/mcp-servers")
    assert isinstance(sent, dict)
    assert (sent["on_connection_loss"], sent["rate_limit"]) == ("unregister", {"calls": 60, "per_s": 30.5})


@pytest.mark.parametrize("rate", ["60", "a/b", "1.5/60", "/"])
def test_a_rate_of_another_form_is_bad_usage(rate: str) -> None:
    outcome = FakeService().run("mcp", "add", "t", "--url", "https://x/mcp", "--rate-limit", rate)
    assert outcome.exit_code == 2
    assert "CALLS/SECONDS" in outcome.err


STATUS = whole(
    ServerStatusView, {"state": "connected", "since": "2026-01-01T00:00:00Z", "last_error": None, "tool_count": 2}
)


@pytest.mark.requirement("B3")
def test_a_server_is_connected_and_disconnected() -> None:
    service = FakeService().on("POST", "/v1/mcp-servers/time/connect", STATUS)
    service.on("POST", "/v1/mcp-servers/time/disconnect", {**STATUS, "state": "disconnected"})
    assert service.run("mcp", "connect", "time").err == "time is connected with 2 tools.\n"
    assert service.run("mcp", "disconnect", "time").err == "time is disconnected.\n"


@pytest.mark.requirement("B7")
def test_a_refreshed_server_shows_its_tools() -> None:
    tools = whole(
        McpServerToolsView, {"data": [TOOL], "skipped": [], "taken_at": "2026-01-01T00:00:00Z", "protocol_version": "x"}
    )
    outcome = FakeService().on("POST", "/v1/mcp-servers/time/refresh", tools).run("mcp", "refresh", "time")
    assert (outcome.exit_code, "mcp__time__now" in outcome.out) == (0, True)


def test_a_server_that_cannot_be_connected_says_why() -> None:
    service = FakeService().on(
        "POST", "/v1/mcp-servers/time/connect", problem(503, "mcp_server_unavailable", "The command was not found.")
    )
    outcome = service.run("mcp", "connect", "time")
    assert (outcome.exit_code, "The command was not found." in outcome.err) == (1, True)


def test_what_limits_a_server_is_shown_with_it() -> None:
    limits: JsonObject = {
        "on_connection_loss": "unregister",
        "max_concurrency": 3,
        "rate_limit": {"calls": 60, "per_s": 30.5},
    }
    service = FakeService().on("GET", "/v1/mcp-servers/time", {**SERVER, **limits})
    service.on("GET", "/v1/mcp-servers/time/status", STATUS)
    shown = service.run("mcp", "show", "time").out
    assert all(said in shown for said in ("unregister", "60 calls in 30.5 s"))
