"""The organization's settings, secrets and model providers in the console: for admins alone, and
nothing secret comes back."""

import re

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_agents import fields_of

RULE = {"decision": "deny", "overridable": True}


async def form_of(service: Service, browser: dict[str, str]) -> dict[str, str]:
    page = await browse(service, "GET", "/console/settings", headers={"cookie": browser["cookie"]})
    assert page.status_code == 200
    return fields_of(page, 'id="editor"')


async def settings(service: Service) -> dict[str, object]:
    document: dict[str, object] = (await service.call("GET", "/v1/organization")).json()
    return document


async def test_settings_are_saved_as_the_api_has_them_and_not_at_all_if_nothing_is_touched(service: Service) -> None:
    await service.call("PATCH", "/v1/organization", json={"tool_policies": {"mcp__*": RULE}, "models": [MODEL]})
    before = await settings(service)
    browser = await signed_in(service)
    fields = await form_of(service, browser)
    untouched = await browse(service, "POST", "/console/settings", headers=browser, data=fields)
    assert untouched.status_code == 200
    assert await settings(service) == before
    entered = fields | {
        "name": "Acme",
        "daily_budget_usd": "12.5",
        "retention_days": "30",
        "limits.max_turns": "8",
        "allowlist": "listed",
        "allowlist_entries": "send_*",
        "rule.n1.pattern": "send_mail",
        "rule.n1.decision": "require_approval",
        "inbox_webhook_secret": "CHAT_HOOK",
    }
    entered.pop("mcp_enabled")
    answer = await browse(service, "POST", "/console/settings", headers=browser, data=entered)
    assert answer.status_code == 200
    assert "tool_policies.send_mail: no tool of this organization has that name" in answer.text
    saved = await settings(service)
    assert (saved["name"], saved["mcp_enabled"], saved["retention_days"]) == ("Acme", False, 30)
    assert (saved["daily_budget_usd"], saved["models"]) == (12.5, [MODEL])
    assert saved["tool_allowlist"] == ["send_*"]
    assert saved["inbox_webhook_secret"] == "CHAT_HOOK"
    assert saved["tool_policies"] == {"mcp__*": RULE, "send_mail": {"decision": "require_approval"}}


@pytest.mark.parametrize(
    ("entered", "field"),
    [
        ({"name": ""}, "name"),
        ({"models": "nothing"}, "models"),
        ({"inbox_webhook_secret": "no name"}, "inbox_webhook_secret"),
        ({"retention_days": "0"}, "retention_days"),
        ({"retention_days": "a while"}, "retention_days"),
        ({"daily_budget_usd": "-1"}, "daily_budget_usd"),
        ({"limits.max_tokens": "-1"}, "limits-max_tokens"),
        ({"rule.n1.pattern": "x", "rule.n1.timeout_s": "0"}, "rule-n1-timeout_s"),
    ],
)
async def test_what_is_wrong_with_settings_is_said_at_its_field(
    service: Service, entered: dict[str, str], field: str
) -> None:
    browser = await signed_in(service)
    fields = await form_of(service, browser) | entered
    answer = await browse(service, "POST", "/console/settings", headers=browser, data=fields)
    assert answer.status_code == 422
    assert re.findall(r'<p class="fault" id="([^"]+)-fault">', answer.text) == [field]
    assert (await settings(service))["version"] == 1


async def test_who_saves_settings_after_somebody_else_sees_first_what_it_would_change(service: Service) -> None:
    browser = await signed_in(service)
    fields = await form_of(service, browser) | {"retention_days": "30"}
    await service.call("PATCH", "/v1/organization", json={"models": [MODEL]})
    refused = await browse(service, "POST", "/console/settings", headers=browser, data=fields)
    assert refused.status_code == 412
    changes = refused.text.partition('class="conflict"')[2].partition("<p>Save again")[0]
    assert re.findall(r'<dt class="mono">([^<]+)</dt>', changes) == ["models", "retention_days"]
    assert (await settings(service))["version"] == 2
    again = fields_of(refused, "<form") | {"models": MODEL}
    assert (await browse(service, "POST", "/console/settings", headers=browser, data=again)).status_code == 200
    saved = await settings(service)
    assert (saved["models"], saved["retention_days"], saved["version"]) == ([MODEL], 30, 3)


@pytest.mark.requirement("C7", "H4")
async def test_secrets_and_providers_are_kept_by_name_and_their_values_never_come_back(service: Service) -> None:
    browser = await signed_in(service)
    value = "  line one\r\nline two "
    form = {"secret_name": "ACME", "secret_value": value}
    stored = await browse(service, "POST", "/console/secrets", headers=browser, data=form)
    assert "ACME is stored." in stored.text
    again = await browse(service, "POST", "/console/secrets", headers=browser, data=form | {"secret_value": "other"})
    assert "ACME has another value now." in again.text
    provider = {"provider_name": "acme", "provider_kind": "openai", "provider_secret": "ACME"}
    added = await browse(service, "POST", "/console/model-providers", headers=browser, data=provider)
    assert "Its models are named acme:MODEL." in added.text
    [known] = (await service.call("GET", "/v1/model-providers")).json()["data"]
    assert (known["name"], known["api_key"]) == ("acme", {"secret": "ACME"})
    in_use = await browse(service, "POST", "/console/secrets/ACME/delete", headers=browser)
    tested = await browse(service, "POST", "/console/model-providers/acme/test", headers=browser)
    assert "lists 2 models" in tested.text
    assert "No agent uses the provider" in tested.text
    options = await browse(service, "GET", "/console/parts/models", headers=browser)
    assert '<option value="acme:small">' in options.text
    assert (in_use.status_code, in_use.headers["hx-retarget"]) == (409, "#flash")
    for answer in (stored, again, added):
        assert "line one" not in answer.text
    await browse(service, "POST", "/console/model-providers/acme/delete", headers=browser)
    gone = await browse(service, "POST", "/console/secrets/ACME/delete", headers=browser)
    assert "ACME is deleted." in gone.text
    assert (await service.call("GET", "/v1/secrets")).json()["data"] == []


@pytest.mark.requirement("H4")
async def test_a_provider_in_a_cloud_is_added_with_its_settings(service: Service) -> None:
    browser = await signed_in(service)
    form = {"provider_name": "aws", "provider_kind": "bedrock", "provider_region": "eu-central-1"}
    role = {"provider_role": "arn:aws:iam::123456789012:role/models"}
    added = await browse(service, "POST", "/console/model-providers", headers=browser, data=form | role)
    assert "Its models are named aws:MODEL." in added.text
    [known] = (await service.call("GET", "/v1/model-providers")).json()["data"]
    assert (known["cloud"]["region"], known["cloud"]["role"]) == ("eu-central-1", role["provider_role"])
    assert known["base_url"] == "https://bedrock-runtime.eu-central-1.amazonaws.com"


@pytest.mark.parametrize(
    ("path", "form", "field"),
    [
        (
            "model-providers",
            {"provider_name": "acme", "provider_kind": "vertex", "provider_region": "europe-west1"},
            "provider_project",
        ),
        ("secrets", {"secret_name": "a b", "secret_value": "hidden-value"}, "secret_name"),
        ("secrets", {"secret_name": "ACME", "secret_value": ""}, "secret_value"),
        ("model-providers", {"provider_name": "A", "provider_kind": "openai"}, "provider_name"),
        ("model-providers", {"provider_name": "acme", "provider_kind": "other"}, "provider_kind"),
        (
            "model-providers",
            {"provider_name": "acme", "provider_kind": "openai", "provider_base_url": "ftp://x"},
            "provider_base_url",
        ),
        (
            "model-providers",
            {"provider_name": "acme", "provider_kind": "openai", "provider_api_key": "hidden-value é"},
            "provider_api_key",
        ),
    ],
)
async def test_what_is_wrong_with_something_secret_is_said_without_it(
    service: Service, path: str, form: dict[str, str], field: str
) -> None:
    browser = await signed_in(service)
    answer = await browse(service, "POST", f"/console/{path}", headers=browser, data=form)
    assert answer.status_code == 422
    assert re.findall(r'<p class="fault" id="([^"]+)-fault">', answer.text) == [field]
    assert "hidden-value" not in answer.text


async def test_a_key_that_was_entered_in_vain_is_asked_for_again(service: Service) -> None:
    browser = await signed_in(service)
    form = {"provider_name": "A", "provider_kind": "openai", "provider_api_key": "hidden-value"}
    answer = await browse(service, "POST", "/console/model-providers", headers=browser, data=form)
    assert answer.status_code == 422
    assert set(re.findall(r'<p class="fault" id="([^"]+)-fault">', answer.text)) == {
        "provider_name",
        "provider_api_key",
    }
    assert "hidden-value" not in answer.text


@pytest.mark.requirement("C6")
async def test_settings_and_secrets_are_for_admins_of_the_organization(service: Service) -> None:
    admin, operator = await signed_in(service), await signed_in(service, token_of(Role.OPERATOR))
    stranger = await signed_in(service, OTHER_ADMIN)
    fields = await form_of(service, admin)
    await service.call("POST", "/v1/secrets", json={"name": "ACME", "value": "a value"})
    provider = {"provider_name": "acme", "provider_kind": "openai"}
    for method, path, data in (
        ("GET", "/console/settings", {}),
        ("POST", "/console/settings", fields),
        ("GET", "/console/secrets", {}),
        ("POST", "/console/secrets", {"secret_name": "X", "secret_value": "y"}),
        ("POST", "/console/secrets/ACME/delete", {}),
        ("POST", "/console/model-providers", provider),
        ("POST", "/console/model-providers/acme/delete", {}),
    ):
        assert (await browse(service, method, path, headers=operator, data=data)).status_code == 403, path
        if method == "POST":
            forged = await browse(service, method, path, headers={"cookie": admin["cookie"]}, data=data)
            assert forged.status_code == 403, path
    assert "ACME" not in (await browse(service, "GET", "/console/secrets", headers=stranger)).text
    assert (await browse(service, "POST", "/console/secrets/ACME/delete", headers=stranger)).status_code == 404
    assert (await service.call("GET", "/v1/secrets")).json()["data"] != []
