"""The team of a workflow in the editor of the console, and in versions that are restored there."""

from dataclasses import replace

import pytest

from tests.builders import ORG, an_audit_event
from tests.contract.test_provisioning import GROUP, a_group
from tests.integration.http.service import Service
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_workflows import TEXT, saved, stocked
from tests.people_builders import a_provider

__all__ = ["stocked"]
pytestmark = pytest.mark.requirement("P2")


@pytest.mark.requirement("U6")
async def test_an_older_version_that_is_restored_keeps_the_team(stocked: Service) -> None:
    admin = await signed_in(stocked)
    path = await saved(stocked)
    await stocked.call("POST", "/v1/groups", json={"name": "finance"})
    other = TEXT.replace("name: answers", "name: answers\nteam: finance").replace("{type: object}", "{type: string}")
    given = await browse(stocked, "POST", f"{path}/edit", headers=admin, data={"definition": other, "version": "1"})
    assert given.headers["hx-redirect"] == path, given.text
    restored = await browse(stocked, "POST", f"{path}/restore?version=1&newest=2", headers=admin)
    assert restored.headers["hx-redirect"] == path, restored.text
    newest = (await stocked.call("GET", "/v1/workflows/answers")).json()
    assert (newest["version"], newest["nodes"][0]["config"]) == (3, {"schema": {"type": "object"}})
    assert (newest["team"], newest["text"]) == ("finance", None)


async def test_the_editor_accepts_the_team_that_a_workflow_has_when_its_group_is_gone(stocked: Service) -> None:
    admin = await signed_in(stocked)
    stored = (await stocked.call("GET", (await saved(stocked)).replace("/console", "/v1"))).json()
    workflows = stocked.stores.workflows
    found = await workflows.find(ORG, "answers")
    assert found is not None
    given = replace(found, version=2, definition=replace(found.definition, team="gone"))
    groups = stocked.stores.groups
    await stocked.stores.identity_providers.add(a_provider(), an_audit_event(701))
    await groups.add_group(a_group(name="gone"), an_audit_event(702))
    await workflows.save(given, expected_version=1, audit=an_audit_event(700))
    assert await groups.delete_group(a_provider(), GROUP, an_audit_event(703))
    text = TEXT.replace("name: answers", "name: answers\nteam: gone")
    for sent, told in (
        ({}, ["unknown_team"]),
        ({"workflow": "new"}, ["unknown_team"]),
        ({"workflow": stored["id"]}, []),
    ):
        data = {"definition": text, **sent}
        checked = (await browse(stocked, "POST", "/console/workflows/check", headers=admin, data=data)).json()
        assert [fault["code"] for fault in checked["errors"]] == told
