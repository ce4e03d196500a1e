"""Starting a workflow in the console by a form of the schema of its input."""

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_agents import fields_of
from tests.integration.http.test_console_servers import faults
from tests.integration.http.test_console_workflows import TEXT, saved

WITH_FIELDS = TEXT.replace(
    "{type: object}",
    "{type: object, required: [topic], properties: {topic: {type: string}, pages: {type: integer}, dry: {type: boolean}}}",
)


@pytest.fixture
async def stocked(service: Service) -> Service:
    """A service with what the workflow names."""
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    await service.call("POST", "/v1/mcp-servers", json={"slug": "files", "kind": "custom", "command": "x"})
    return service


@pytest.mark.requirement("F4", "U6")
async def test_a_run_is_started_by_a_form_of_the_schema_of_its_input(stocked: Service) -> None:
    path = await saved(stocked, WITH_FIELDS)
    runner = await signed_in(stocked, token_of(Role.RUNNER))
    page = await browse(stocked, "GET", path, headers=runner)
    assert f'novalidate hx-post="{path}/runs"' in page.text, "JSON is used instead of required fields"
    fields = fields_of(page, "Start a run")
    assert fields.keys() >= {"schema", "f0", "f1"}
    wrong = await browse(stocked, "POST", f"{path}/runs", headers=runner, data=fields | {"f0": "b", "f1": "two"})
    assert faults(wrong) == ["input-f1"]
    missing = await browse(stocked, "POST", f"{path}/runs", headers=runner, data=fields | {"f1": "2"})
    assert faults(missing) == ["input-f0"]
    form = fields | {"f0": "bridges", "f1": "2", "f2": "yes"}
    started = await browse(stocked, "POST", f"{path}/runs", headers=runner, data=form)
    run = started.headers["hx-redirect"].rpartition("/")[2]
    found = (await stocked.call("GET", f"/v1/workflow-runs/{run}")).json()
    assert found["input"] == {"topic": "bridges", "pages": 2, "dry": True}


@pytest.mark.requirement("F4", "U6")
async def test_a_form_of_another_schema_starts_nothing_and_json_goes_before_the_fields(stocked: Service) -> None:
    path = await saved(stocked, WITH_FIELDS)
    runner = await signed_in(stocked, token_of(Role.RUNNER))
    fields = fields_of(await browse(stocked, "GET", path, headers=runner), "Start a run") | {"f0": "bridges"}
    old = await browse(stocked, "POST", f"{path}/runs", headers=runner, data=fields | {"schema": "sha256:0"})
    assert (old.status_code, "load the page again" in old.text) == (422, True)
    assert (await stocked.call("GET", "/v1/workflow-runs")).json()["data"] == []
    form = {"f0": "bridges", "input": '{"topic": "towers"}'}
    started = await browse(stocked, "POST", f"{path}/runs", headers=runner, data=form)
    run = started.headers["hx-redirect"].rpartition("/")[2]
    assert (await stocked.call("GET", f"/v1/workflow-runs/{run}")).json()["input"] == {"topic": "towers"}
