"""Tools that an admin declares in the console's form of an MCP server."""

import json

import pytest

from tests.integration.http.service import Service
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_servers import NEW, REMOTE, faults, saved


@pytest.mark.requirement("B1")
async def test_tools_of_an_endpoint_that_answers_calls_only_are_declared_in_the_form(service: Service) -> None:
    admin = await signed_in(service)
    lookup = {"name": "lookup", "description": "Looks up.", "parameters": {"type": "object"}}
    for text in ("[", "{}", json.dumps([{**lookup, "name": "a b"}])):
        refused = await browse(service, "POST", NEW, headers=admin, data=REMOTE | {"declared_tools": text})
        assert [field.partition(".")[0] for field in faults(refused)] == ["declared_tools"]

    await browse(service, "POST", NEW, headers=admin, data=REMOTE | {"declared_tools": json.dumps([lookup])})
    declared = (await saved(service, "tickets"))["declared_tools"]
    assert declared == [{**lookup, "output_schema": None}]
    form = await browse(service, "GET", "/console/servers/tickets/edit", headers=admin)
    assert "Looks up." in form.text
    tested = await browse(service, "POST", "/console/servers/tickets/test", headers=admin)
    assert "not tested" in tested.text

    cleared = {**REMOTE, "revision": "1", "declared_tools": ""}
    await browse(service, "POST", "/console/servers/tickets/edit", headers=admin, data=cleared)
    assert (await saved(service, "tickets"))["declared_tools"] == []
    assert "declared_tools" not in (await browse(service, "GET", f"{NEW}?kind=npm", headers=admin)).text
