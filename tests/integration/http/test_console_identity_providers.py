"""Identity providers in the console: added, changed, tested and deleted by admins, and no secret
comes back."""

import re
from typing import cast

import pytest

from domain.identity.role import Role
from tests.integration.http.service import OTHER_ADMIN, PLATFORM, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_agents import fields_of

pytestmark = pytest.mark.requirement("P1", "U6")
LIST = "/console/settings/identity-providers"
NEW = "/console/settings/identity-providers-new"
COMPANY = {
    "name": "company",
    "issuer": "https://login.example.com",
    "client_id": "dragoman",
    "client_secret": "s3cret-of-the-client",
    "scopes": "openid email groups",
    "rule.0.claim": "groups",
    "rule.0.value": "agents",
    "rule.0.role": "operator",
    "rule.n1.claim": "email",
    "rule.n1.value": "*",
    "rule.n1.role": "viewer",
}


async def added(service: Service, admin: dict[str, str]) -> str:
    """The address of a new provider's page."""
    answer = await browse(service, "POST", NEW, headers=admin, data=COMPANY)
    address = answer.headers["hx-redirect"]
    assert address.startswith(f"{LIST}/idp_"), answer.text
    return str(address)


async def stored(service: Service) -> dict[str, object]:
    [found] = (await service.call("GET", "/v1/identity-providers")).json()["data"]
    return dict(found)


async def test_a_provider_is_added_with_its_rules_in_their_order_and_its_secret_is_never_shown(
    service: Service,
) -> None:
    admin = await signed_in(service)
    assert "None yet." in (await browse(service, "GET", LIST, headers=admin)).text
    page = await added(service, admin)
    found = await stored(service)
    assert (found["name"], found["scopes"]) == ("company", ["openid", "email", "groups"])
    nothing = {"organization_id": None, "custom_role": None}
    assert found["rules"] == [
        {"claim": "groups", "value": "agents", "role": "operator", **nothing},
        {"claim": "email", "value": "*", "role": "viewer", **nothing},
    ]
    for path in (LIST, page):
        shown = await browse(service, "GET", path, headers=admin)
        assert (shown.status_code, "company" in shown.text) == (200, True)
        assert "s3cret" not in shown.text


async def test_a_form_that_is_saved_as_it_was_shown_changes_nothing(service: Service) -> None:
    admin = await signed_in(service)
    page = await added(service, admin)
    before = await stored(service)
    fields = fields_of(await browse(service, "GET", page, headers=admin), 'id="editor"')
    same = await browse(service, "POST", page, headers=admin, data=fields)
    assert same.status_code == 200, same.text
    assert await stored(service) == before
    changed = fields | {
        "cli_client_id": "dragoman-cli",
        "rule.0.role": "runner",
        "audiences": "https://a.example.com\n",
    }
    answer = await browse(service, "POST", page, headers=admin, data=changed)
    assert "Saved as version 2." in answer.text
    now = await stored(service)
    assert (now["cli_client_id"], now["audiences"]) == ("dragoman-cli", ["https://a.example.com"])
    assert now["client_secret"] == "[hidden]"
    public = fields_of(answer, "<form") | {"public": "on"}
    assert (await browse(service, "POST", page, headers=admin, data=public)).status_code == 200
    assert (await stored(service))["client_secret"] is None


async def test_a_change_of_what_another_admin_changed_meanwhile_is_refused(service: Service) -> None:
    admin = await signed_in(service)
    page = await added(service, admin)
    fields = fields_of(await browse(service, "GET", page, headers=admin), 'id="editor"')
    await service.call("PATCH", "/v1/identity-providers/company", json={"cli_client_id": "theirs"})
    refused = await browse(service, "POST", page, headers=admin, data=fields | {"client_id": "mine"})
    assert (refused.status_code, "Another admin saved it meanwhile." in refused.text) == (422, True)
    assert (await stored(service))["client_id"] == "dragoman"


@pytest.mark.parametrize(
    ("entered", "faults"),
    [
        ({"name": "Not A Name"}, {"name"}),
        ({"issuer": "http://login.example.com"}, {"issuer"}),
        ({"scopes": "email"}, {"scopes"}),
        ({"rule.n1.claim": ""}, {"rule-n1-claim"}),
        ({"rule.n1.role": "king"}, {"rule-n1-role"}),
    ],
)
async def test_what_is_wrong_is_said_at_its_field_and_the_secret_is_asked_for_again(
    service: Service, entered: dict[str, str], faults: set[str]
) -> None:
    admin = await signed_in(service)
    refused = await browse(service, "POST", NEW, headers=admin, data=COMPANY | entered)
    assert refused.status_code == 422
    assert set(re.findall(r'<p class="fault" id="([^"]+)-fault">', refused.text)) == {*faults, "client_secret"}
    assert "s3cret" not in refused.text
    assert (await service.call("GET", "/v1/identity-providers")).json()["data"] == []


async def test_a_name_that_is_taken_is_said_at_the_name(service: Service) -> None:
    admin = await signed_in(service)
    await added(service, admin)
    again = COMPANY | {"issuer": "https://other.example.com", "client_secret": ""}
    refused = await browse(service, "POST", NEW, headers=admin, data=again)
    assert re.findall(r'<p class="fault" id="([^"]+)-fault">', refused.text) == ["name"]


async def test_a_test_says_what_does_not_work_and_a_deleted_provider_is_gone(service: Service) -> None:
    admin = await signed_in(service)
    page = await added(service, admin)
    tested = await browse(service, "POST", f"{page}/test", headers=admin)
    assert (tested.status_code, "does not work" in tested.text, "cannot be reached" in tested.text) == (200, True, True)
    deleted = await browse(service, "POST", f"{page}/delete", headers=admin)
    assert deleted.headers["hx-redirect"] == LIST
    assert (await browse(service, "GET", page, headers=admin)).status_code == 404


async def test_a_token_of_a_directory_is_shown_once_and_revoked(service: Service) -> None:
    admin = await signed_in(service)
    page = await added(service, admin)
    made = await browse(service, "POST", f"{page}/scim-token", headers=admin)
    token = re.findall(r'value="(dgs_[\w-]+)"', made.text)
    assert len(token) == 1
    assert token[0] not in (await browse(service, "GET", page, headers=admin)).text
    users = {"Authorization": f"Bearer {token[0]}"}
    assert (await service.client.get("/scim/v2/Users", headers=users)).status_code == 200
    revoked = await browse(service, "POST", f"{page}/scim-token/revoke", headers=admin)
    assert "is revoked" in revoked.text
    assert (await service.client.get("/scim/v2/Users", headers=users)).status_code == 401


async def test_only_platform_keys_see_what_concerns_other_organizations(service: Service) -> None:
    admin, platform = await signed_in(service), await signed_in(service, PLATFORM)
    box = 'name="installation"'
    assert box not in (await browse(service, "GET", NEW, headers=admin)).text
    assert box in (await browse(service, "GET", NEW, headers=platform)).text
    form = COMPANY | {"installation": "on"}
    assert (await browse(service, "POST", NEW, headers=admin, data=form)).status_code == 403
    page = (await browse(service, "POST", NEW, headers=platform, data=form)).headers["hx-redirect"]
    assert "on every sign-in page" in (await browse(service, "GET", LIST, headers=admin)).text
    assert (await browse(service, "POST", f"{page}/delete", headers=admin)).status_code == 403


async def test_only_admins_of_the_organization_see_its_providers(service: Service) -> None:
    page = await added(service, await signed_in(service))
    operator = await signed_in(service, token_of(Role.OPERATOR))
    for method, path in (
        ("GET", LIST),
        ("GET", NEW),
        ("POST", NEW),
        ("GET", page),
        ("POST", page),
        ("POST", f"{page}/test"),
        ("POST", f"{page}/scim-token"),
        ("POST", f"{page}/scim-token/revoke"),
        ("POST", f"{page}/delete"),
    ):
        assert (await browse(service, method, path, headers=operator, data={})).status_code == 403, path
    other = await signed_in(service, OTHER_ADMIN)
    assert (await browse(service, "GET", page, headers=other)).status_code == 404


@pytest.mark.requirement("P2")
async def test_a_rule_gives_a_custom_role_in_place_of_a_role(service: Service) -> None:
    admin = await signed_in(service)
    await service.call("POST", "/v1/roles", json={"name": "reader", "permissions": []})
    entered = {**COMPANY, "rule.n1.role": "runner", "rule.n1.custom_role": "nobody"}
    refused = await browse(service, "POST", NEW, headers=admin, data=entered)
    assert (refused.status_code, "rule-n1-custom_role" in refused.text) == (422, True)
    added_one = await browse(service, "POST", NEW, headers=admin, data={**entered, "rule.n1.custom_role": "reader"})
    assert "hx-redirect" in added_one.headers, added_one.text
    rule = {"claim": "email", "value": "*", "role": "viewer", "organization_id": None, "custom_role": "reader"}
    assert rule in cast("list[object]", (await stored(service))["rules"])
