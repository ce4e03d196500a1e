"""`dragoman org`, `key` and `provider`, and the stop button."""

import io
import sys

import pytest

from domain.json_value import JsonObject
from interfaces.http.api_keys.views import ApiKeyView
from interfaces.http.model_providers.views import CloudView, ModelProviderView
from interfaces.http.organization.views import OrganizationView
from tests.unit.interfaces.cli.fake_service import FakeService, whole

ORGANIZATION = whole(
    OrganizationView,
    {
        "id": "org_1",
        "name": "acme",
        "mcp_enabled": True,
        "version": 2,
        "created_at": "2026-01-01T12:00:00Z",
    },
)
KEY = whole(
    ApiKeyView,
    {
        "id": "key_1",
        "name": "ci",
        "role": "runner",
        "platform": False,
        "created_at": "2026-01-01T12:00:00Z",
    },
)
PROVIDER = whole(
    ModelProviderView,
    {
        "name": "acme",
        "kind": "openai",
        "base_url": "https://models.example.com/v1",
        "api_key": "[hidden]",
    },
)


@pytest.mark.requirement("C6")
def test_a_new_organizations_token_is_all_that_is_printed() -> None:
    answer: JsonObject = {**ORGANIZATION, "admin_key": {**KEY, "token": "dgm_new"}}
    service = FakeService().on("POST", "/v1/organizations", answer)
    outcome = service.run("org", "create", "acme")
    assert (outcome.exit_code, outcome.out.strip()) == (0, "dgm_new")
    assert service.sent("POST", "/v1/organizations") == [{"name": "acme"}]


@pytest.mark.requirement("C6")
def test_a_further_admin_keys_token_is_all_that_is_printed() -> None:
    path = "/v1/organizations/org_1/api-keys"
    service = FakeService().on("POST", path, {**KEY, "role": "admin", "token": "dgm_new"})
    outcome = service.run("org", "key", "org_1", "second admin")
    assert (outcome.exit_code, outcome.out.strip()) == (0, "dgm_new")
    assert service.sent("POST", path) == [{"name": "second admin"}]


def test_organizations_are_listed() -> None:
    service = FakeService().on("GET", "/v1/organizations", {"data": [dict(ORGANIZATION)], "next_cursor": None})
    outcome = service.run("org", "list")
    assert "org_1" in outcome.out
    assert "acme" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "path"),
    [((), "/v1/organization"), (("--org", "org_1"), "/v1/organizations/org_1")],
)
def test_settings_are_json_where_they_are_and_text_else(arguments: tuple[str, ...], path: str) -> None:
    warning = "user_limits: there is no user 'usr_nope'"
    service = FakeService().on("PATCH", path, {**ORGANIZATION, "warnings": [warning]})
    fields = ("mcp_enabled=false", "name=12", 'models=["a:b"]', "retention_days=null")
    outcome = service.run("org", "set", *arguments, *fields)
    assert outcome.exit_code == 0
    assert f"Warning: {warning}." in outcome.err
    assert service.sent("PATCH", path) == [
        {"mcp_enabled": False, "name": "12", "models": ["a:b"], "retention_days": None}
    ]


def test_a_setting_without_a_value_is_bad_usage() -> None:
    service = FakeService()
    assert service.run("org", "set", "mcp_enabled").exit_code == 2
    assert service.requests == []


@pytest.mark.requirement("C6")
def test_a_key_may_be_given_an_end_and_a_rate() -> None:
    service = FakeService().on("POST", "/v1/api-keys", {**KEY, "token": "dgm_new"})
    assert service.run("key", "create", "ci", "--days", "1", "--rate", "60/2.5").exit_code == 0
    (sent,) = service.sent("POST", "/v1/api-keys")
    assert isinstance(sent, dict)
    assert sent["rate_limit"] == {"calls": 60, "per_s": 2.5}
    assert str(sent["expires_at"]).endswith("+00:00")
    assert "platform" not in sent


@pytest.mark.parametrize("arguments", [("--rate", "60"), ("--rate", "a/b"), ("--days", "1e300"), ("--days", "soon")])
def test_an_end_or_rate_that_is_none_is_bad_usage(arguments: tuple[str, ...]) -> None:
    service = FakeService()
    assert service.run("key", "create", "ci", *arguments).exit_code == 2
    assert service.requests == []


@pytest.mark.requirement("C7")
def test_a_providers_key_comes_from_a_pipe_or_a_secret_and_never_from_the_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = FakeService().on("POST", "/v1/model-providers", dict(PROVIDER))
    monkeypatch.setattr(sys, "stdin", io.StringIO("sk-piped\n"))
    piped = service.run("provider", "add", "acme", "--kind", "openai", "--base-url", "https://models.example.com/v1")
    assert service.run("provider", "add", "acme", "--kind", "openai", "--secret", "ACME").exit_code == 0
    assert service.run("provider", "add", "acme", "--kind", "openai", "--no-key").exit_code == 0
    assert service.sent("POST", "/v1/model-providers") == [
        {"name": "acme", "kind": "openai", "base_url": "https://models.example.com/v1", "api_key": "sk-piped"},
        {"name": "acme", "kind": "openai", "api_key": {"secret": "ACME"}},
        {"name": "acme", "kind": "openai"},
    ]
    assert "sk-piped" not in piped.out + piped.err
    assert service.run("provider", "add", "acme", "sk-argument", "--kind", "openai").exit_code == 2


def test_the_kind_of_a_provider_is_checked_before_its_key_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    service = FakeService()
    piped = io.StringIO("sk-piped\n")
    monkeypatch.setattr(sys, "stdin", piped)
    refused = service.run("provider", "add", "acme", "--kind", "opnai")
    assert refused.exit_code == 2
    assert "not 'opnai'. Did you mean 'openai'?" in refused.err
    assert (service.requests, piped.read()) == ([], "sk-piped\n")


def test_a_provider_is_changed_field_by_field_and_its_key_never_comes_from_the_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = FakeService().on("PATCH", "/v1/model-providers/acme", dict(PROVIDER))
    changed = service.run("provider", "update", "acme", "base_url=https://models.example.com/v2", "wire=responses")
    monkeypatch.setattr(sys, "stdin", io.StringIO("sk-piped\n"))
    assert service.run("provider", "update", "acme", "--key", 'cloud={"region": "eu-west-1"}').exit_code == 0
    assert service.run("provider", "update", "acme", "--secret", "ACME").exit_code == 0
    assert service.run("provider", "update", "acme", "--no-key").exit_code == 0
    assert service.sent("PATCH", "/v1/model-providers/acme") == [
        {"base_url": "https://models.example.com/v2", "wire": "responses"},
        {"cloud": {"region": "eu-west-1"}, "api_key": "sk-piped"},
        {"api_key": {"secret": "ACME"}},
        {"api_key": None},
    ]
    assert "dragoman provider test acme" in changed.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("api_key=sk-argument",),
        ('deployments=[{"name": "eu", "api_key": "sk-argument"}]',),
        ("name=other",),
        ("--key", "--no-key"),
    ],
    ids=["nothing", "a key", "a key of a deployment", "the name", "two keys"],
)
def test_a_change_of_a_provider_that_cannot_be_is_bad_usage(arguments: tuple[str, ...]) -> None:
    service = FakeService()
    refused = service.run("provider", "update", "acme", *arguments)
    assert refused.exit_code == 2
    assert "sk-argument" not in refused.err
    assert service.requests == []


def test_a_provider_is_shown_with_its_wire_its_cloud_and_its_deployments() -> None:
    cloud: JsonObject = {**dict.fromkeys(CloudView.__annotations__), "region": "eu-west-1", "identity": "key"}
    deployment: JsonObject = {"name": "eu", "base_url": None, "api_key": "[hidden]", "weight": 3}
    provider: JsonObject = {**dict(PROVIDER), "wire": "native", "cloud": cloud, "deployments": [deployment]}
    shown = FakeService().on("GET", "/v1/model-providers/acme", provider).run("provider", "show", "acme").out
    for words in ("native", "region eu-west-1", "eu at the base URL, weight 3", "stored"):
        assert words in shown


def test_providers_are_listed_and_deleted() -> None:
    service = FakeService().on("GET", "/v1/model-providers", {"data": [dict(PROVIDER)], "next_cursor": None})
    service.on("DELETE", "/v1/model-providers/acme", {})
    assert "stored" in service.run("provider", "list").out
    assert service.run("provider", "delete", "acme").exit_code == 0


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (("--agent", "guide"), {"agent_id": "guide"}),
        (("--server", "files"), {"server": "files"}),
        (("--all",), {"all": True}),
    ],
)
def test_the_stop_button_names_one_target_and_says_what_came_of_it(
    arguments: tuple[str, ...], sent: dict[str, object]
) -> None:
    service = FakeService().on("POST", "/v1/runs/cancel", {"cancelled": 2, "stopping": 1})
    outcome = service.run("run", "cancel", *arguments)
    assert service.sent("POST", "/v1/runs/cancel") == [sent]
    assert "2" in outcome.err
    assert "1" in outcome.err


@pytest.mark.parametrize("arguments", [(), ("run_1", "--all"), ("--agent", "guide", "--all")])
def test_cancelling_nothing_or_two_things_is_bad_usage(arguments: tuple[str, ...]) -> None:
    service = FakeService()
    assert service.run("run", "cancel", *arguments).exit_code == 2
    assert service.requests == []


CHECK: JsonObject = {
    "deployment": None,
    "check": "credentials",
    "outcome": "ok",
    "detail": "Accepted; the provider lists 2 models.",
    "latency_ms": 120,
    "provider_error": None,
}
REFUSED: JsonObject = {
    **CHECK,
    "check": "tool_call",
    "outcome": "failed",
    "detail": "The model provider rejected the request.",
    "provider_error": {"status": 400, "code": None, "message": "Function tools are\nnot supported."},
}


@pytest.mark.requirement("H4")
def test_a_test_of_a_provider_is_a_line_for_each_check_with_the_providers_words() -> None:
    outcome: JsonObject = {"ok": False, "provider": "acme", "model": "acme:small", "checks": [CHECK, REFUSED]}
    service = FakeService().on("POST", "/v1/model-providers/acme/test", outcome)
    shown = service.run("provider", "test", "acme", "--model", "acme:small")
    assert shown.exit_code == 1
    credentials, tool_call = shown.out.splitlines()
    assert credentials.split()[:2] == ["credentials", "ok"]
    assert tool_call.split()[:3] == ["tool", "call", "failed"]
    assert tool_call.endswith("The provider said: Function tools are not supported.")
    assert service.sent("POST", "/v1/model-providers/acme/test") == [{"model": "small"}]
    passed = FakeService().on("POST", "/v1/model-providers/acme/test", {**outcome, "ok": True, "checks": [CHECK]})
    assert passed.run("provider", "test", "acme").exit_code == 0
    assert passed.sent("POST", "/v1/model-providers/acme/test") == [{}]


@pytest.mark.requirement("H4")
def test_a_test_without_a_model_says_how_one_is_named() -> None:
    skipped: JsonObject = {**CHECK, "check": "model", "outcome": "skipped", "detail": "No agent uses the provider."}
    outcome: JsonObject = {"ok": False, "provider": "acme", "model": None, "checks": [CHECK, skipped]}
    shown = FakeService().on("POST", "/v1/model-providers/acme/test", outcome).run("provider", "test", "acme")
    assert shown.exit_code == 1
    assert "--model NAME" in shown.err
    assert "dragoman provider models acme" in shown.err


@pytest.mark.requirement("H4")
def test_models_of_a_provider_are_listed_one_a_line() -> None:
    service = FakeService().on("GET", "/v1/model-providers/acme/models", {"data": ["acme:a", "acme:b"]})
    assert service.run("provider", "models", "acme").out.splitlines() == ["acme:a", "acme:b"]
