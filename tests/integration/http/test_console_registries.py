"""The console's pages of MCP registries: search, an entry with its inputs, a server registered from
it, and newer versions."""

from collections.abc import AsyncIterator

import pytest

from application.mcp.registries import REGISTRY_UNAVAILABLE
from application.mcp.registry_documents import OFFICIAL_META
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.json_value import JsonObject
from tests.integration.http.service import Harness, Service, token_of
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("U6", "X6")
SEARCH = "/console/servers-registries"
ENTRY = f"{SEARCH}/ours/com.example/tickets"


def a_document(version: str = "1.2.0") -> JsonObject:
    package: JsonObject = {
        "registryType": "npm",
        "identifier": "@example/tickets",
        "version": version,
        "transport": {"type": "stdio"},
        "environmentVariables": [
            {"name": "TOKEN", "description": "Of <b>yours</b>", "isRequired": True, "isSecret": True},
            {"name": "MODE", "choices": ["fast", "slow"], "default": "fast"},
            {"name": "NODE_OPTIONS", "value": "--require=./more.js"},
        ],
    }
    remote: JsonObject = {"type": "streamable-http", "url": "https://tickets.example.com/mcp"}
    server: JsonObject = {
        "name": "com.example/tickets",
        "version": version,
        "description": "Tickets of <i>customers</i>",
        "packages": [package, {"registryType": "nuget", "identifier": "Tickets"}],
        "remotes": [remote],
    }
    return {"server": server, "_meta": {OFFICIAL_META: {"isLatest": True}}}


class OneRegistry:
    """`ours`, with one entry whose latest version a test sets; `is_away` while it does not
    answer."""

    def __init__(self) -> None:
        self.latest = "1.2.0"
        self.is_away = False
        self.names: tuple[str, ...] = ("ours",)

    async def search(self, registry: str, search: str, *, limit: int, cursor: str | None) -> JsonObject:
        self._answer()
        found: list[JsonObject] = [a_document(self.latest)] if search in "com.example/tickets" else []
        return {"servers": [*found], "metadata": {"nextCursor": None if cursor else "c&2"}}

    async def version(self, registry: str, name: str, version: str) -> JsonObject | None:
        self._answer()
        return a_document(self.latest if version == "latest" else version)

    def _answer(self) -> None:
        if self.is_away:
            raise ServiceError(REGISTRY_UNAVAILABLE, ErrorKind.UNAVAILABLE, "The registry does not answer.")


@pytest.fixture
def registry() -> OneRegistry:
    return OneRegistry()


@pytest.fixture
async def service(registry: OneRegistry) -> AsyncIterator[Service]:
    async with Harness(mcp_registries=registry).service() as running:
        yield running


async def test_entries_are_found_by_a_part_of_their_name_a_page_at_a_time(service: Service) -> None:
    admin = await signed_in(service)
    page = await browse(service, "GET", SEARCH, headers=admin)
    assert page.status_code == 200
    assert f'href="{ENTRY}"' in page.text
    assert "Tickets of &lt;i&gt;customers&lt;/i&gt;" in page.text
    assert f"{SEARCH}?registry=ours&amp;search=&amp;cursor=c%262" in page.text
    last = await browse(service, "GET", f"{SEARCH}?registry=ours&search=tick&cursor=c%262", headers=admin)
    assert "More entries" not in last.text
    none = await browse(service, "GET", f"{SEARCH}?search=nothing", headers=admin)
    assert "no entry with “nothing”" in none.text


async def test_a_registry_that_does_not_answer_is_said_where_it_was_searched(
    service: Service, registry: OneRegistry
) -> None:
    registry.is_away = True
    page = await browse(service, "GET", f"{SEARCH}?search=tickets", headers=await signed_in(service))
    assert page.status_code == 200
    assert "The registry does not answer." in page.text
    assert 'value="tickets"' in page.text


async def test_without_a_registry_the_page_names_the_setting(service: Service, registry: OneRegistry) -> None:
    registry.names = ()
    page = await browse(service, "GET", SEARCH, headers=await signed_in(service))
    assert "DRAGOMAN_MCP_REGISTRIES" in page.text
    assert 'name="search"' not in page.text


async def test_an_entry_shows_what_it_sets_what_is_chosen_and_what_is_not_possible(service: Service) -> None:
    await service.call("POST", "/v1/secrets", json={"name": "TICKETS_TOKEN", "value": "s3cret"})
    admin = await signed_in(service)
    page = (await browse(service, "GET", ENTRY, headers=admin)).text
    assert "--require=./more.js" in page
    assert "Of &lt;b&gt;yours&lt;/b&gt;" in page
    assert '<option value="TICKETS_TOKEN"' in page
    assert '<option value="slow"' in page
    assert "Packages of the type nuget cannot be installed here." in page
    other = (await browse(service, "GET", f"{ENTRY}?option=1", headers=admin)).text
    assert "https://tickets.example.com/mcp" in other
    assert "It needs no values." in other
    beyond = await browse(service, "GET", f"{ENTRY}?option=-7", headers=admin)
    assert "--require=./more.js" in beyond.text


async def test_a_server_is_registered_with_its_inputs_from_the_version_that_was_shown(service: Service) -> None:
    await service.call("POST", "/v1/secrets", json={"name": "TICKETS_TOKEN", "value": "s3cret"})
    admin = await signed_in(service)
    form = {"version": "1.1.0", "option": "0", "inputs.0.secret": "TICKETS_TOKEN", "inputs.1": "slow"}
    added = await browse(service, "POST", ENTRY, headers=admin, data=form)
    assert added.headers["hx-redirect"] == "/console/servers/tickets", added.text
    server = (await service.call("GET", "/v1/mcp-servers/tickets")).json()
    assert (server["version"], server["registry_entry"]) == ("1.1.0", "ours:com.example/tickets@1.1.0")
    assert server["env"] == {
        "TOKEN": {"secret": "TICKETS_TOKEN"},
        "MODE": "[hidden]",
        "NODE_OPTIONS": "[hidden]",
    }
    again = await browse(service, "POST", ENTRY, headers=admin, data=form)
    assert (again.status_code, again.headers["hx-retarget"]) == (422, "#faults")
    assert 'data-field="slug"' in again.text


@pytest.mark.parametrize("option", ["0", "9", "x", ""])
async def test_what_is_missing_is_said_at_its_field_and_nothing_is_registered(service: Service, option: str) -> None:
    admin = await signed_in(service)
    refused = await browse(
        service, "POST", ENTRY, headers=admin, data={"version": "1.2.0", "option": option, "inputs.1": "fast"}
    )
    assert (refused.status_code, refused.headers["hx-retarget"]) == (422, "#faults")
    assert ('data-field="inputs.0"' in refused.text) == (option == "0")
    assert (await service.call("GET", "/v1/mcp-servers")).json()["data"] == []


async def test_the_page_of_a_server_says_whether_its_registry_has_a_newer_version(
    service: Service, registry: OneRegistry
) -> None:
    admin = await signed_in(service)
    form = {"version": "1.2.0", "option": "1"}
    await browse(service, "POST", ENTRY, headers=admin, data=form)
    newer = "/console/servers/tickets/newer-version"
    assert newer in (await browse(service, "GET", "/console/servers/tickets", headers=admin)).text
    assert "It is the latest version." in (await browse(service, "GET", newer, headers=admin)).text
    registry.latest = "1.3.0"
    said = (await browse(service, "GET", newer, headers=admin)).text
    assert "Version 1.3.0 is available." in said
    assert f"{ENTRY}?version=1.3.0" in said
    registry.is_away = True
    away = await browse(service, "GET", newer, headers=admin)
    assert (away.status_code, "does not answer" in away.text) == (200, True)


async def test_only_admins_come_near_registries(service: Service) -> None:
    operator = await signed_in(service, token_of(Role.OPERATOR))
    for method, path in (("GET", SEARCH), ("GET", ENTRY), ("POST", ENTRY), ("GET", "/console/servers/x/newer-version")):
        assert (await browse(service, method, path, headers=operator, data={})).status_code == 403
    assert "servers-registries" not in (await browse(service, "GET", "/console/servers", headers=operator)).text
