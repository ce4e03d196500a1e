"""A model provider edited in the console: only what was changed is saved, and its key never comes
back."""

import pytest

from domain.identity.role import Role
from domain.secrets.secret import SecretRef
from tests.builders import ORG
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_agents import fields_of

pytestmark = pytest.mark.requirement("H4", "U6")
PAGE = "/console/settings/model-providers/acme"


async def with_provider(service: Service, **fields: object) -> dict[str, str]:
    """An admin's browser, and the provider `acme`."""
    for name in ("ACME", "OTHER"):
        await service.call("POST", "/v1/secrets", json={"name": name, "value": "s3cret"})
    made = await service.call("POST", "/v1/model-providers", json={"name": "acme", "kind": "openai", **fields})
    assert made.status_code == 201, made.text
    return await signed_in(service)


async def saved(service: Service) -> dict[str, object]:
    found: dict[str, object] = (await service.call("GET", "/v1/model-providers/acme")).json()
    return found


async def form_of(service: Service, browser: dict[str, str]) -> dict[str, str]:
    page = await browse(service, "GET", PAGE, headers=browser)
    assert page.status_code == 200
    return fields_of(page, 'id="editor"')


@pytest.mark.parametrize(
    "fields",
    [
        {"api_key": "k-1"},
        {"api_key": {"secret": "ACME"}},
        {"kind": "bedrock", "cloud": {"region": "eu-central-1"}, "api_key": {"secret": "ACME"}},
        {"api_key": "k-1", "deployments": [{"name": "eu", "api_key": "k-2"}, {"name": "us"}]},
    ],
)
async def test_a_form_that_is_saved_as_it_was_shown_changes_nothing(
    service: Service, fields: dict[str, object]
) -> None:
    browser = await with_provider(service, **fields)
    before = await saved(service)
    same = await browse(service, "POST", PAGE, headers=browser, data=await form_of(service, browser))
    assert same.status_code == 200, same.text
    assert await saved(service) == before
    assert "k-1" not in same.text


async def test_address_api_and_key_are_changed(service: Service) -> None:
    browser = await with_provider(service, api_key="k-1")
    fields = await form_of(service, browser)
    form = fields | {"provider_base_url": "https://models.example.com/v1", "provider_wire": "chat"}
    answer = await browse(service, "POST", PAGE, headers=browser, data=form | {"provider_secret": "OTHER"})
    assert "Saved as version 2." in answer.text
    now = await saved(service)
    assert (now["base_url"], now["wire"]) == ("https://models.example.com/v1", "chat")
    assert now["api_key"] == {"secret": "OTHER"}
    entered = fields_of(answer, "<form") | {"provider_api_key": "k-2"}
    assert "k-2" not in (await browse(service, "POST", PAGE, headers=browser, data=entered)).text
    assert (await saved(service))["api_key"] == "[hidden]"
    removed = await form_of(service, browser) | {"provider_no_key": "on"}
    await browse(service, "POST", PAGE, headers=browser, data=removed)
    assert (await saved(service))["api_key"] is None


async def test_the_vendors_address_follows_a_change_of_the_region(service: Service) -> None:
    browser = await with_provider(service, kind="bedrock", cloud={"region": "eu-central-1"}, api_key={"secret": "ACME"})
    form = await form_of(service, browser) | {"provider_region": "us-east-1"}
    assert (await browse(service, "POST", PAGE, headers=browser, data=form)).status_code == 200
    now = await saved(service)
    assert "us-east-1" in str(now["base_url"])
    assert dict(now["cloud"])["region"] == "us-east-1"  # type: ignore[call-overload]


async def test_deployments_are_added_changed_and_removed_and_keep_the_keys_that_are_not_entered(
    service: Service,
) -> None:
    stored = [{"name": "eu", "api_key": "k-2"}, {"name": "us", "api_key": {"secret": "ACME"}, "weight": 3}]
    browser = await with_provider(service, api_key="k-1", deployments=stored)
    form = await form_of(service, browser)
    added = {
        "deployment.n1.name": "asia",
        "deployment.n1.base_url": "https://asia.example.com/v1",
        "deployment.n1.api_key": "k-3",
    }
    changed = {"deployment.0.weight": "2", "deployment.1.name": "usa", "deployment.1.secret": "OTHER"}
    answer = await browse(service, "POST", PAGE, headers=browser, data=form | added | changed)
    assert "Saved as version 2." in answer.text
    assert "k-2" not in answer.text
    assert "k-3" not in answer.text
    assert (await saved(service))["deployments"] == [
        {"name": "eu", "base_url": None, "api_key": "[hidden]", "weight": 2},
        {"name": "usa", "base_url": None, "api_key": {"secret": "OTHER"}, "weight": 3},
        {"name": "asia", "base_url": "https://asia.example.com/v1", "api_key": "[hidden]", "weight": 1},
    ]
    keys = [each.api_key for each in (await service.stores.model_providers.all(ORG))[0].deployments]
    assert keys == ["k-2", SecretRef("OTHER"), "k-3"]
    left = {
        name: value for name, value in (await form_of(service, browser)).items() if not name.startswith("deployment.1.")
    }
    await browse(service, "POST", PAGE, headers=browser, data=left | {"deployment.0.no_key": "on"})
    now = (await service.stores.model_providers.all(ORG))[0].deployments
    assert [(each.name, each.api_key) for each in now] == [("eu", None), ("asia", "k-3")]


async def test_what_is_wrong_in_a_deployment_is_said_at_its_field(service: Service) -> None:
    browser = await with_provider(service, deployments=[{"name": "eu", "api_key": "k-2"}])
    form = await form_of(service, browser)
    for field, value in (("weight", "much"), ("weight", "0"), ("name", "Not A Name"), ("base_url", "no address")):
        refused = await browse(service, "POST", PAGE, headers=browser, data=form | {f"deployment.0.{field}": value})
        assert refused.status_code == 422
        assert f'id="deployment-0-{field}-fault"' in refused.text
        assert "k-2" not in refused.text
    assert (await saved(service))["version"] == 1


async def test_what_is_wrong_is_said_at_its_field_and_a_key_is_asked_for_again(service: Service) -> None:
    browser = await with_provider(service)
    form = await form_of(service, browser) | {"provider_base_url": "no address", "provider_api_key": "k-9"}
    refused = await browse(service, "POST", PAGE, headers=browser, data=form)
    assert refused.status_code == 422
    assert 'id="provider_base_url-fault"' in refused.text
    assert 'id="provider_api_key-fault"' in refused.text
    assert "k-9" not in refused.text
    assert (await saved(service))["version"] == 1


async def test_a_change_of_what_another_admin_changed_meanwhile_is_refused(service: Service) -> None:
    browser = await with_provider(service)
    form = await form_of(service, browser) | {"provider_wire": "responses"}
    await service.call("PATCH", "/v1/model-providers/acme", json={"echo_reasoning": "never"})
    refused = await browse(service, "POST", PAGE, headers=browser, data=form)
    assert (refused.status_code, "Another admin saved it meanwhile." in refused.text) == (422, True)
    assert (await saved(service))["wire"] == "auto"


async def test_only_admins_edit_providers(service: Service) -> None:
    await with_provider(service)
    operator = await signed_in(service, token_of(Role.OPERATOR))
    assert (await browse(service, "GET", PAGE, headers=operator)).status_code == 403
    assert (await browse(service, "POST", PAGE, headers=operator, data={})).status_code == 403
