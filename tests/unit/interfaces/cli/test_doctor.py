"""`dragoman doctor`."""

import os
from pathlib import Path

import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.diagnosis.finding import State
from interfaces.cli.diagnosis.machine import disk_finding, home_findings, node_finding, python_finding
from interfaces.cli.diagnosis.service import agent_findings, organization_provider_findings, provider_findings
from interfaces.http.mcp_servers import views
from interfaces.http.mcp_servers.views import McpServerView, PinnedToolView, ServerStatusView
from interfaces.http.model_providers.views import ModelProviderView
from tests.unit.interfaces.cli.fake_service import FakeService, Outcome, agent_document, problem, whole

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("DRAGOMAN_", "OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("DRAGOMAN_HOME", str(path))
    return path


def healthy() -> FakeService:
    return (
        FakeService()
        .on("GET", "/health/ready", {"status": "ready"})
        .on("GET", "/v1/agents", {"data": [agent_document()], "next_cursor": None})
        .on("GET", "/v1/mcp-servers", {"data": [], "next_cursor": None})
        .on("GET", "/v1/model-providers", {"data": [], "next_cursor": None})
    )


def server(slug: str, *, enabled: bool = True) -> JsonObject:
    return whole(McpServerView, {"id": f"mcp_{slug}", "slug": slug, "kind": "custom", "enabled": enabled})


def states(outcome: Outcome) -> dict[str, tuple[str, str]]:
    findings = outcome.json["findings"]
    assert isinstance(findings, list)
    return {
        str(found["check"]): (str(found["state"]), f"{found['detail']} {found['advice']}")
        for found in findings
        if isinstance(found, dict)
    }


@pytest.mark.requirement("G2")
def test_a_healthy_installation_is_exit_code_0_and_warnings_do_not_change_that() -> None:
    outcome = healthy().run("doctor", "--json")
    found = states(outcome)
    assert outcome.exit_code == 0
    assert found["readiness"][0] == found["home"][0] == found["python"][0] == found["service"][0] == "ok"
    assert found["model provider"][0] == "warning"


@pytest.mark.requirement("G2")
def test_what_is_wrong_is_said_with_what_to_do_and_exit_code_1(home: Path) -> None:
    (home / "admin.key").write_text("dgm_1", encoding="utf-8")
    (home / "admin.key").chmod(0o644)
    home.chmod(0o755)
    service = healthy()
    service.answers["GET", "/health/ready"] = [problem(503, "not_ready", "Not ready: migrations.")]
    service.answers["GET", "/v1/agents"] = [
        {
            "data": [agent_document(model="openai:gpt"), agent_document(name="off", model="openai:gpt", enabled=False)],
            "next_cursor": None,
        }
    ]
    service.answers["GET", "/v1/mcp-servers"] = [
        {"data": [server("good"), server("bad"), server("odd"), server("off", enabled=False)], "next_cursor": None}
    ]
    works = whole(
        views.TestResultView,
        {"ok": True, "protocol_version": "2026-07-28", "latency_ms": 5, "tools": [{"name": "now"}]},
    )
    for slug in ("good", "odd", "bad"):
        service.on("GET", f"/v1/mcp-servers/{slug}/status", whole(ServerStatusView, {"state": "disconnected"}))
        service.on("GET", f"/v1/mcp-servers/{slug}/tools", {"data": [], "next_cursor": None})
    service.on("POST", "/v1/mcp-servers/good/test", works)
    service.on("POST", "/v1/mcp-servers/odd/test", {**works, "skipped": [{"name": "b d", "reason": "illegal"}]})
    service.on(
        "POST",
        "/v1/mcp-servers/bad/test",
        whole(views.TestResultView, {"ok": False, "error": {"code": "timeout", "detail": "No answer."}}),
    )
    outcome = service.run("doctor", "--json")
    found = states(outcome)
    assert outcome.exit_code == 1
    assert found["home"] == ("problem", f"{home}, mode 0755: open to other users chmod 700 {home}")
    assert found["admin.key"][1].endswith(f"chmod 600 {home}/admin.key")
    assert found["readiness"][0] == "problem"
    assert found["agent"][0] == "problem"
    assert "guide uses openai:gpt" in found["agent"][1]
    assert "OPENAI_API_KEY" in found["agent"][1]
    assert found["mcp server good"] == ("ok", "disconnected; the test finds 1 tools, 2026-07-28, 5 ms ")
    assert found["mcp server odd"][0] == "warning"
    assert found["mcp server bad"][0] == "problem"
    assert "No answer." in found["mcp server bad"][1]
    assert found["mcp server off"] == ("ok", "disabled ")


def test_for_people_each_finding_is_a_line_and_advice_another(home: Path) -> None:
    home.chmod(0o755)
    shown = healthy().run("doctor").out
    assert f"problem  home: {home}, mode 0755: open to other users\n         → chmod 700 {home}\n" in shown


def test_wrong_settings_are_the_only_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "many")
    outcome = healthy().run("doctor", "--json")
    assert outcome.exit_code == 1
    assert list(states(outcome)) == ["settings"]
    assert "DRAGOMAN_PORT" in states(outcome)["settings"][1]


def test_a_variable_that_is_no_setting_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PROT", "1")
    outcome = healthy().run("doctor")
    assert outcome.exit_code == 0
    assert "DRAGOMAN_PROT is not a setting" in outcome.out


def test_a_home_that_is_not_there_yet_is_not_made(home: Path) -> None:
    home.rmdir()
    service = healthy()
    outcome = service.run("doctor", "--json")
    assert (outcome.exit_code, states(outcome)["home"][0]) == (0, "warning")
    assert not home.exists()
    assert service.requests == []


def test_with_a_url_the_service_is_looked_at_and_not_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_URL", "http://service.test")
    assert list(states(healthy().run("doctor", "--json"))) == ["settings", "service", "readiness"]


def test_a_service_that_refuses_is_a_finding() -> None:
    service = healthy()
    service.answers["GET", "/v1/agents"] = [problem(401, "token_invalid", "The API key is not valid.")]
    outcome = service.run("doctor")
    assert outcome.exit_code == 1
    assert "The API key is not valid." in outcome.out


def test_a_service_that_left_its_address_behind_is_a_warning(home: Path) -> None:
    (home / "serve.json").write_text('{"url": "http://127.0.0.1:9", "pid": 4194304}', encoding="utf-8")
    (home / "serve.json").chmod(0o600)
    state, text = states(healthy().run("doctor", "--json"))["service"]
    assert state == "warning"
    assert "dragoman serve" in text


def test_a_home_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert [found.state for found in home_findings(path)] == [State.PROBLEM]


@pytest.mark.parametrize(
    ("free", "state"), [(50 * MIB, State.PROBLEM), (500 * MIB, State.WARNING), (5000 * MIB, State.OK)]
)
def test_little_room_is_a_warning_and_less_an_error(free: int, state: State) -> None:
    assert disk_finding(free).state is state


def test_an_old_python_is_an_error() -> None:
    assert python_finding((3, 10, 9)).state is State.PROBLEM
    assert python_finding((3, 11, 0)).state is State.OK


def test_node_is_wanted_but_not_needed(tmp_path: Path) -> None:
    broken = tmp_path / "node"
    broken.touch(mode=0o644)
    assert node_finding(None).state is State.WARNING
    assert node_finding(str(broken)).state is State.WARNING


def test_an_endpoint_of_ones_own_may_do_without_a_key() -> None:
    found = list(
        provider_findings({"openai": False, "anthropic": True}, {"openai": "http://localhost:1", "anthropic": None})
    )
    assert [finding.state for finding in found] == [State.OK, State.OK]


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(
    ("state", "command"), [("not_installed", "dragoman mcp install"), ("needs_auth", "dragoman mcp authorize")]
)
def test_a_server_that_waits_for_the_operator_is_not_tested_and_says_which_command_it_waits_for(
    state: str, command: str
) -> None:
    service = healthy()
    service.answers["GET", "/v1/mcp-servers"] = [{"data": [server("new")], "next_cursor": None}]
    service.on("GET", "/v1/mcp-servers/new/status", whole(ServerStatusView, {"state": state}))
    outcome = service.run("doctor", "--json")
    found = states(outcome)["mcp server new"]
    assert (outcome.exit_code, found[0]) == (1, "problem")
    assert f"`{command} new`" in found[1]


@pytest.mark.requirement("G2", "B13")
def test_tools_in_quarantine_are_a_warning_with_their_names() -> None:
    service = healthy()
    service.answers["GET", "/v1/mcp-servers"] = [{"data": [server("changed")], "next_cursor": None}]
    service.on("GET", "/v1/mcp-servers/changed/status", whole(ServerStatusView, {"state": "connected"}))
    service.on(
        "POST",
        "/v1/mcp-servers/changed/test",
        whole(views.TestResultView, {"ok": True, "protocol_version": "2026-07-28", "tools": []}),
    )
    states_of = (("pay", "quarantined"), ("look", "approved"))
    tools: list[JsonValue] = [whole(PinnedToolView, {"name": name, "state": state}) for name, state in states_of]
    service.on("GET", "/v1/mcp-servers/changed/tools", {"data": tools, "next_cursor": None})
    state, text = states(service.run("doctor", "--json"))["mcp server changed"]
    assert state == "warning"
    assert "pay" in text
    assert "look" not in text


def test_every_file_of_home_that_others_can_read_is_a_problem(home: Path) -> None:
    (home / "backup.sql").write_text("", encoding="utf-8")
    (home / "backup.sql").chmod(0o640)
    found = states(healthy().run("doctor", "--json"))["backup.sql"]
    assert found == ("problem", f"{home}/backup.sql, mode 0640: open to other users chmod 600 {home}/backup.sql")


@pytest.mark.requirement("H4")
async def test_a_provider_that_needs_packages_which_are_missing_is_a_problem() -> None:
    vertex = {"name": "vertex", "kind": "vertex", "wire": "auto", "base_url": "https://aiplatform.googleapis.com"}
    openai = {"name": "acme", "kind": "openai", "wire": "auto", "base_url": "https://models.example.com/v1"}
    known: list[JsonValue] = [whole(ModelProviderView, each) for each in (vertex, openai)]
    service = FakeService().on("GET", "/v1/model-providers", {"data": known, "next_cursor": None})
    for each in ("vertex", "acme"):
        service.on("GET", f"/v1/model-providers/{each}/models", {"data": []})
    async with service.connected() as api:
        found, other = await organization_provider_findings(api, has_extra=lambda: False)
        installed = await organization_provider_findings(api, has_extra=lambda: True)
    assert [each.state for each in (other, *installed)] == [State.OK] * 3
    assert found.state is State.PROBLEM
    assert "vertex needs the extra" in found.detail
    assert "pip install 'dragoman[providers]'" in str(found.advice)


@pytest.mark.requirement("H4")
async def test_an_agent_whose_provider_the_organization_has_added_needs_no_key_of_the_environment() -> None:
    service = healthy()
    service.answers["GET", "/v1/agents"] = [{"data": [agent_document(model="openai:x")], "next_cursor": None}]
    async with service.connected() as api:
        [found] = await agent_findings(api, without_key=frozenset({"openai", "anthropic"}))
    assert "dragoman provider add openai" in found.advice
    added: list[JsonValue] = [whole(ModelProviderView, {"name": "openai", "kind": "openai"})]
    service.answers["GET", "/v1/model-providers"] = [{"data": added, "next_cursor": None}]
    async with service.connected() as api:
        assert await agent_findings(api, without_key=frozenset({"openai", "anthropic"})) == []


@pytest.mark.requirement("H6")
async def test_what_a_provider_says_that_refuses_its_key_is_shown() -> None:
    acme = {"name": "acme", "kind": "openai", "wire": "auto", "base_url": "https://models.example.com/v1"}
    said = "The models of 'acme' cannot be listed. The model provider refused the API key. The provider said: Disabled."
    known: list[JsonValue] = [whole(ModelProviderView, acme)]
    service = FakeService().on("GET", "/v1/model-providers", {"data": known, "next_cursor": None})
    service.on("GET", "/v1/model-providers/acme/models", problem(503, "model_list_unavailable", said))
    async with service.connected() as api:
        [found] = await organization_provider_findings(api, has_extra=lambda: True)
    assert (found.state, found.check) == (State.WARNING, "model provider acme")
    assert "The provider said: Disabled." in found.detail
    assert "dragoman provider test acme" in found.advice
