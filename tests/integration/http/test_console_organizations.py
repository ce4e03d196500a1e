"""All organizations in the console, for platform keys alone."""

import re

import pytest

from domain.identity.role import Role
from tests.builders import ORG, OTHER_ORG
from tests.integration.http.service import PLATFORM, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_agents import fields_of

pytestmark = pytest.mark.requirement("U6")
LIST = "/console/settings/organizations"
OTHER = f"{LIST}/{OTHER_ORG}"


def token_in(text: str) -> str:
    [found] = re.findall(r'id="token" class="mono" value="([^"]+)"', text)
    return str(found)


async def test_an_organization_is_created_with_an_admin_key_that_is_shown_once(service: Service) -> None:
    platform = await signed_in(service, PLATFORM)
    created = await browse(service, "POST", LIST, headers=platform, data={"name": "Acme"})
    assert (created.status_code, created.headers["hx-trigger"]) == (200, "organizations-changed")
    page = (await browse(service, "GET", LIST, headers=platform)).text
    assert ">Acme</a>" in page
    token = token_in(created.text)
    assert token not in page
    assert (await service.call("GET", "/v1/organization", token=token)).json()["name"] == "Acme"


async def test_what_only_a_platform_changes_is_changed_and_the_rest_stays(service: Service) -> None:
    platform = await signed_in(service, PLATFORM)
    shown = await browse(service, "GET", OTHER, headers=platform)
    before = (await service.call("GET", f"/v1/organizations/{OTHER_ORG}", token=PLATFORM)).json()
    same = await browse(service, "POST", OTHER, headers=platform, data=fields_of(shown, 'id="editor"'))
    assert same.status_code == 200, same.text
    assert (await service.call("GET", f"/v1/organizations/{OTHER_ORG}", token=PLATFORM)).json() == before
    form = fields_of(shown, 'id="editor"') | {"queue_weight": "3", "max_running": "7", "mcp_kinds": "http\nnpm"}
    saved = await browse(service, "POST", OTHER, headers=platform, data=form)
    assert "Saved as version" in saved.text
    now = (await service.call("GET", f"/v1/organizations/{OTHER_ORG}", token=PLATFORM)).json()
    assert (now["queue_weight"], now["max_running"], now["mcp_kinds"]) == (3, 7, ["http", "npm"])
    old = await browse(service, "POST", OTHER, headers=platform, data=form | {"queue_weight": "4"})
    assert (old.status_code, "It was saved meanwhile." in old.text) == (422, True)


@pytest.mark.parametrize(
    ("entered", "field"), [({"queue_weight": "0"}, "queue_weight"), ({"mcp_kinds": "ftp"}, "mcp_kinds")]
)
async def test_what_is_wrong_is_said_at_its_field(service: Service, entered: dict[str, str], field: str) -> None:
    platform = await signed_in(service, PLATFORM)
    form = fields_of(await browse(service, "GET", OTHER, headers=platform), 'id="editor"')
    refused = await browse(service, "POST", OTHER, headers=platform, data=form | entered)
    assert refused.status_code == 422
    assert re.findall(r'<p class="fault" id="([^"]+)-fault">', refused.text) == [field]


async def test_an_organization_without_keys_gets_an_admin_key(service: Service) -> None:
    platform = await signed_in(service, PLATFORM)
    made = await browse(service, "POST", f"{OTHER}/keys", headers=platform, data={"key_name": "second"})
    found = (await service.call("GET", "/v1/organization", token=token_in(made.text))).json()
    assert found["id"] == OTHER_ORG


async def test_only_platform_keys_see_organizations(service: Service) -> None:
    admin = await signed_in(service, token_of(Role.ADMIN))
    own = f"{LIST}/{ORG}"
    for method, path in (("GET", LIST), ("POST", LIST), ("GET", OTHER), ("POST", OTHER), ("GET", own), ("POST", own)):
        answer = await browse(service, method, path, headers=admin, data={"name": "x", "version": "1"})
        assert answer.status_code == 403, path
    assert (await browse(service, "POST", f"{OTHER}/keys", headers=admin, data={"key_name": "x"})).status_code == 403
    assert LIST not in (await browse(service, "GET", "/console/settings", headers=admin)).text
