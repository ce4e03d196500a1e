"""The audit trail in the console: searched by date, server and who, exported and verified."""

import json
import re

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in


@pytest.mark.requirement("C5")
async def test_the_audit_trail_is_searched_and_verified(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    browser = await signed_in(service, token_of(Role.VIEWER))
    page = await browse(service, "GET", "/console/audit?action=agent.*", headers=browser)
    assert "agent.created" in page.text.partition("<tbody>")[2]
    nothing = await browse(service, "GET", "/console/audit?actor=nobody", headers=browser)
    assert "No matching entries." in nothing.text
    assert (
        "No matching entries."
        in (await browse(service, "GET", "/console/audit?since=2999-01-01", headers=browser)).text
    )
    assert "agent.created" in (await browse(service, "GET", "/console/audit?until=2999-01-01", headers=browser)).text
    of_server = await browse(service, "GET", "/console/audit?server_id=mcp_none", headers=browser)
    assert "No matching entries." in of_server.text
    wrong = await browse(service, "GET", "/console/audit?since=yesterday", headers=browser)
    assert "“yesterday” is not a day" in wrong.text
    refused = await browse(service, "GET", "/console/audit/export?since=yesterday", headers=browser)
    assert (refused.status_code, "agent.created" in refused.text) == (422, False)
    assert re.search(r'<a href="/console/audit\?actor=key_[^"]+" title="key_[^"]+">(?!key_)', page.text)
    verified = await browse(service, "POST", "/console/audit/verify", headers=browser)
    assert "whole" in verified.text
    exported = await browse(service, "GET", "/console/audit/export?action=agent.*&actor=", headers=browser)
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert {line["action"] for line in lines} == {"agent.created"}
    assert "attachment" in exported.headers["content-disposition"]
    assert f'"{exported.request.url.path}?action=agent.%2A"' in page.text


@pytest.mark.requirement("C5", "U6")
async def test_older_entries_keep_the_filter_without_reading_all_servers(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    new = {"slug": "files", "kind": "custom", "command": "x"}
    server = (await service.call("POST", "/v1/mcp-servers", json=new)).json()["id"]
    browser = await signed_in(service, token_of(Role.VIEWER))
    first = await browse(service, "GET", f"/console/audit?server_id={server}", headers=browser)
    assert f'<option value="{server}" selected>files</option>' in first.text
    cursor = (await service.call("GET", "/v1/audit-events?limit=1")).json()["next_cursor"]
    older = await browse(service, "GET", f"/console/audit?server_id={server}&cursor={cursor}", headers=browser)
    assert f'name="server_id" value="{server}"' in older.text
    assert ">files</option>" not in older.text


@pytest.mark.requirement("C5", "U6")
async def test_entries_name_what_they_are_about_and_lead_to_its_page(service: Service) -> None:
    agent = (await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})).json()["id"]
    run = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "Count the pears"})).json()["id"]
    new = {"slug": "files", "kind": "custom", "command": "x"}
    server = (await service.call("POST", "/v1/mcp-servers", json=new)).json()["id"]
    page = (await browse(service, "GET", "/console/audit", headers=await signed_in(service))).text
    assert f'<a href="/console/agents/{agent}" title="{agent}">guide</a>' in page
    assert f'<a href="/console/runs/{run}" title="{run}">Count the pears</a>' in page
    assert f'<a href="/console/servers/files" title="{server}">files</a>' in page
    assert f'data-text="{agent}" aria-label="Copy the id of the resource"' in page
    await service.call("DELETE", f"/v1/mcp-servers/{server}")
    page = (await browse(service, "GET", "/console/audit", headers=await signed_in(service))).text
    assert f'<span title="{server}">files</span>' in page
