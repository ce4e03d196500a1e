"""`dragoman mcp`: packages, installing, switching, importing."""

import json
from pathlib import Path

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.http.mcp_servers import views
from interfaces.http.mcp_servers.views import McpServerView, ServerStatusView
from tests.unit.interfaces.cli.fake_service import FakeService, problem, whole

SERVER = whole(
    McpServerView, {"id": "mcp_1", "slug": "time", "kind": "python", "package": "mcp-server-time", "version": "1.2"}
)
STATUS = "/v1/mcp-servers/time/status"


def status(state: str, **fields: JsonValue) -> JsonObject:
    return whole(ServerStatusView, {"state": state, "since": "2026-01-01T00:00:00Z", **fields})


def installing(step: str, percent: int) -> JsonObject:
    return status("installing", install={"step": step, "percent": percent})


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (
            ["--kind", "python", "--package", "mcp-server-sqlite mcp<2", "--version", "1.2", "--", "--db-path", "x"],
            {"package": "mcp-server-sqlite mcp<2", "version": "1.2", "args": ["--db-path", "x"]},
        ),
        (["--kind", "npm", "--package", "@a/b", "--command", "c"], {"package": "@a/b", "command": "c", "args": []}),
        (
            ["--path", "/srv/own", "--command", "run.sh", "--", "-v"],
            {"path": "/srv/own", "command": "run.sh", "args": ["-v"]},
        ),
        (["--path", "/srv/own"], {"path": "/srv/own"}),
    ],
)
def test_what_a_server_is_installed_from_is_registered(options: list[str], fields: dict[str, object]) -> None:
    service = FakeService().on("POST", "/v1/mcp-servers", httpx.Response(201, json=SERVER))
    outcome = service.run("mcp", "add", "time", *options)
    assert outcome.exit_code == 0, outcome.err
    kind = options[1] if options[0] == "--kind" else "custom"
    assert service.sent("POST", "/v1/mcp-servers") == [{"slug": "time", "kind": kind, "trusted": False, **fields}]
    assert "dragoman mcp install time" in outcome.err


@pytest.mark.requirement("B1")
def test_a_file_of_this_directory_is_registered_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.whl").touch()
    service = FakeService().on("POST", "/v1/mcp-servers", httpx.Response(201, json=SERVER))
    service.run("mcp", "add", "a", "--kind", "python", "--package", "own.whl mcp<2")
    service.run("mcp", "add", "b", "--path", "own.whl")
    packaged, copied = service.sent("POST", "/v1/mcp-servers")
    assert isinstance(packaged, dict)
    assert isinstance(copied, dict)
    assert packaged["package"] == f"{tmp_path}/own.whl mcp<2"
    assert copied["path"] == f"{tmp_path}/own.whl"


@pytest.mark.parametrize(
    "options",
    [
        ["--package", "x"],
        ["--command", "x", "--", "y"],
        ["--version", "1", "--url", "https://example.org"],
        [],
    ],
)
def test_options_that_do_not_belong_together_are_bad_usage(options: list[str]) -> None:
    service = FakeService()
    assert service.run("mcp", "add", "time", *options).exit_code == 2
    assert service.requests == []


@pytest.mark.requirement("B2")
def test_installing_waits_and_tells_each_step_once() -> None:
    service = FakeService().on(
        "POST", "/v1/mcp-servers/time/install", httpx.Response(202, json=installing("waiting", 0))
    )
    done = status("disconnected", installed_version="1.2.3")
    service.on("GET", STATUS, installing("downloading", 20), installing("downloading", 40), done)
    outcome = service.run("mcp", "install", "time", "--json")
    assert outcome.exit_code == 0
    assert outcome.err.splitlines()[:2] == ["time: waiting", "time: downloading"]
    assert "1.2.3" in outcome.err
    assert outcome.json["installed_version"] == "1.2.3"


@pytest.mark.requirement("B2")
def test_on_a_terminal_installing_shows_a_bar() -> None:
    service = FakeService().on(
        "POST", "/v1/mcp-servers/time/install", httpx.Response(202, json=installing("waiting", 0))
    )
    service.on("GET", STATUS, installing("downloading", 40), status("disconnected", installed_version="1.2.3"))
    service.on("POST", "/v1/mcp-servers/time/test", whole(views.TestResultView, {"ok": True, "latency_ms": 5}))
    outcome = service.run("mcp", "install", "time", interactive=True)
    assert outcome.exit_code == 0
    assert "downloading" in outcome.err
    assert "40%" in outcome.err


@pytest.mark.requirement("B2", "B3")
@pytest.mark.parametrize(
    ("tested", "told"),
    [
        (whole(views.TestResultView, {"ok": True, "latency_ms": 5, "tools": []}), "time works."),
        (
            whole(
                views.TestResultView,
                {"ok": False, "error": {"code": "timeout", "detail": "No answer.", "stderr": "no key"}},
            ),
            "time does not work: No answer.",
        ),
        (problem(409, "mcp_disabled", "MCP is disabled."), "time was not tested: MCP is disabled."),
    ],
)
def test_what_was_installed_is_tested_once(tested: JsonObject | httpx.Response, told: str) -> None:
    service = FakeService().on("POST", "/v1/mcp-servers/time/install", httpx.Response(202, json=status("installing")))
    service.on("GET", STATUS, status("disconnected", installed_version="1.2.3"))
    service.on("POST", "/v1/mcp-servers/time/test", tested)
    outcome = service.run("mcp", "install", "time")
    assert outcome.exit_code == 0
    assert told in (outcome.out + outcome.err).splitlines()


@pytest.mark.requirement("B2")
def test_an_installation_that_fails_is_exit_code_1_with_its_reason() -> None:
    service = FakeService().on(
        "POST", "/v1/mcp-servers/time/install", httpx.Response(202, json=installing("waiting", 0))
    )
    service.on("GET", STATUS, status("not_installed", last_error="The registry has no such package."))
    outcome = service.run("mcp", "install", "time")
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "The registry has no such package." in outcome.err.splitlines()[-1]


def test_what_is_installed_already_is_exit_code_1() -> None:
    refusal = problem(409, "mcp_server_installed", "It is installed; uninstall it first.")
    outcome = FakeService().on("POST", "/v1/mcp-servers/time/install", refusal).run("mcp", "install", "time")
    assert (outcome.exit_code, outcome.err) == (1, "Error: It is installed; uninstall it first.\n")


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(
    ("before", "said"),
    [
        (status("disconnected", installed_version="1.2.3", install=None), "time is uninstalled. It stays registered."),
        (installing("resolving", 10), "time is uninstalled. It stays registered."),
        (
            status("not_installed", installed_version=None, install=None),
            "time is not installed, so nothing changed. It stays registered;",
        ),
    ],
)
def test_a_server_is_uninstalled(before: JsonObject, said: str) -> None:
    service = (
        FakeService()
        .on("GET", STATUS, before)
        .on("POST", "/v1/mcp-servers/time/uninstall", httpx.Response(202, json=status("not_installed")))
    )
    outcome = service.run("mcp", "uninstall", "time", "--json")
    assert (outcome.exit_code, outcome.json["state"]) == (0, "not_installed")
    assert said in outcome.err


@pytest.mark.parametrize(("command", "enabled"), [("enable", True), ("disable", False)])
def test_a_server_is_switched_on_and_off(command: str, enabled: bool) -> None:
    service = FakeService().on("PATCH", "/v1/mcp-servers/time", SERVER)
    outcome = service.run("mcp", command, "time")
    assert outcome.exit_code == 0
    assert service.sent("PATCH", "/v1/mcp-servers/time") == [{"enabled": enabled}]


def entry(name: str, outcome: str, *remarks: JsonValue, needs_install: bool = False) -> JsonObject:
    return {
        "name": name,
        "slug": name.lower(),
        "outcome": outcome,
        "kind": "npm" if outcome == "created" else None,
        "needs_install": needs_install,
        "remarks": [*remarks],
    }


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("key", ["mcpServers", "servers", "context_servers"])
def test_a_file_is_imported_and_each_entry_told(tmp_path: Path, key: str) -> None:
    servers = {"Files": {"command": "npx", "args": ["files"], "env": {"TOKEN": "s3cret"}}, "Bad": {}}
    file = tmp_path / "config.json"
    file.write_text("\ufeff" + json.dumps({key: servers, "theme": "dark"}), encoding="utf-8")
    answer: JsonObject = {
        "data": [entry("Files", "created", needs_install=True), entry("Bad", "skipped", "no command")]
    }
    service = FakeService().on("POST", "/v1/mcp-servers/import", answer)
    outcome = service.run("mcp", "import", str(file))
    assert outcome.exit_code == 0
    assert service.sent("POST", "/v1/mcp-servers/import") == [{"mcpServers": servers}]
    lines = outcome.out.splitlines()
    assert "created" in lines[1]
    assert "skipped" in lines[2]
    assert "no command" in lines[2]
    assert "dragoman mcp install files" in outcome.err
    assert "s3cret" not in outcome.out + outcome.err


def test_an_import_that_registers_nothing_is_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"mcpServers": {"Bad": {}}}')
    answer: JsonObject = {"data": [entry("Bad", "skipped", "no command")]}
    service = FakeService().on("POST", "/v1/mcp-servers/import", answer)
    assert service.run("mcp", "import", str(file), "--json").exit_code == 1


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b"[]", b"{}", b'{"mcpServers": []}', b'{"mcpServers": "s3cret', b"\xff\xfe", b"[" * 100_000],
)
def test_a_file_that_cannot_be_imported_is_bad_usage_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_bytes(content)
    service = FakeService()
    outcome = service.run("mcp", "import", str(file))
    assert (outcome.exit_code, len(outcome.err.splitlines())) == (2, 1)
    assert "s3cret" not in outcome.err
    assert service.requests == []
