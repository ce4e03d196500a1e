"""Servers in trouble in the console: a few on the overview, all behind a link, in words that are
true."""

import re

import pytest

from application.mcp.ports import ServerState
from domain.identity.role import Role
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("U6")


async def unreachable_servers(service: Service, count: int) -> None:
    """No server of the double has these slugs: connecting fails."""
    for number in range(count):
        body = {"slug": f"away-{number}", "kind": "http", "url": "https://mcp.example.com/mcp"}
        assert (await service.call("POST", "/v1/mcp-servers", json=body)).status_code == 201
        await service.call("POST", f"/v1/mcp-servers/away-{number}/refresh")


async def test_the_overview_shows_a_few_and_leads_to_all_of_them(service: Service) -> None:
    await unreachable_servers(service, 7)
    await service.call("POST", "/v1/mcp-servers", json={"slug": "idle", "kind": "custom", "command": "idle"})
    browser = await signed_in(service, token_of(Role.VIEWER))
    overview = (await browse(service, "GET", "/console", headers=browser)).text
    assert len(set(re.findall(r'href="/console/servers/(away-\d)"', overview))) == 5
    assert '<a href="/console/servers?trouble=yes">All 7 servers in trouble</a>' in overview
    troubled = (await browse(service, "GET", "/console/servers?trouble=yes", headers=browser)).text
    assert len(set(re.findall(r'href="/console/servers/(away-\d)"', troubled))) == 7
    assert 'href="/console/servers/idle"' not in troubled
    assert troubled.count("unreachable") == 7
    everything = (await browse(service, "GET", "/console/servers", headers=browser)).text
    assert 'href="/console/servers/idle"' in everything


async def test_without_trouble_the_list_says_so_and_longer_lists_have_pages(service: Service) -> None:
    browser = await signed_in(service, token_of(Role.VIEWER))
    nothing = (await browse(service, "GET", "/console/servers?trouble=yes", headers=browser)).text
    assert "No server is in trouble." in nothing
    for number in range(101):
        body = {"slug": f"of-{number}", "kind": "custom", "command": "idle"}
        await service.call("POST", "/v1/mcp-servers", json=body)
    first = (await browse(service, "GET", "/console/servers", headers=browser)).text
    more = re.search(r'href="(/console/servers\?cursor=[^"]+)"', first)
    assert more is not None
    rest = (await browse(service, "GET", more[1], headers=browser)).text
    assert re.findall(r'href="/console/servers/(of-\d+)"', rest) == ["of-0"]
    assert ServerState.DISCONNECTED.value not in re.sub(r"<[^>]*>", "", rest)
