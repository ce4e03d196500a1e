"""Names of what ids refer to."""

import asyncio
from typing import Any
from unittest.mock import ANY

import pytest
from pytest_mock import MockerFixture

from application.agents.name_agents import NameAgents
from application.agents.ports import AgentName
from application.identity.ports import IdentityStore, UserStore
from application.mcp.queries import GetMcpServer
from application.runs.queries import GetRun
from application.schedules.queries import GetSchedule
from application.workflows.queries import GetWorkflow
from application.workflows.run_queries import GetWorkflowRun
from domain.errors import ErrorKind, ServiceError, not_found
from domain.identity.role import Role
from domain.ids import AgentId
from interfaces.console.resource_names import Named, ResourceNames
from tests.builders import a_run
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")

PORTS = {
    "identities": IdentityStore,
    "users": UserStore,
    "name_agents": NameAgents,
    "get_schedule": GetSchedule,
    "get_mcp_server": GetMcpServer,
    "get_run": GetRun,
    "get_workflow": GetWorkflow,
    "get_workflow_run": GetWorkflowRun,
}


@pytest.fixture
def ports(mocker: MockerFixture) -> dict[str, Any]:
    return {name: mocker.create_autospec(port, instance=True) for name, port in PORTS.items()}


async def test_each_name_is_read_once_and_no_more_than_eight_at_once(ports: dict[str, Any]) -> None:
    reading: set[str] = set()
    most = 0

    async def nobody(_: str, key_id: str) -> None:
        nonlocal most
        reading.add(key_id)
        most = max(most, len(reading))
        for _step in range(3):
            await asyncio.sleep(0)
        reading.remove(key_id)

    ports["identities"].key.side_effect = nobody
    ports["users"].get.return_value = None
    keys = [f"key_{number}" for number in range(20)]
    found = await ResourceNames(**ports).of(a_principal(), ["usr_1", None, *keys, *keys])
    assert {id: named.name for id, named in found.items()} == {"usr_1": "usr_1", **{key: key for key in keys}}
    assert (ports["identities"].key.await_count, most) == (20, 8)
    ports["users"].get.assert_awaited_once_with(ANY, "usr_1")


async def test_what_is_deleted_or_has_no_name_is_called_by_its_id(ports: dict[str, Any]) -> None:
    ports["get_schedule"].execute.side_effect = not_found("schedule", "sch_1")
    ports["get_mcp_server"].execute.side_effect = not_found("MCP server", "mcp_1")
    ports["name_agents"].execute.return_value = {AgentId("agt_1"): AgentName(name="guide", deleted=True)}
    found = await ResourceNames(**ports).of(
        a_principal(), ["schedule:sch_1", "sch_1", "mcp_1", "agt_1", "system", "org_1"]
    )
    assert found == {
        "schedule:sch_1": Named(name="a deleted schedule", id="sch_1"),
        "sch_1": Named(name="sch_1", id="sch_1"),
        "mcp_1": Named(name="mcp_1", id="mcp_1"),
        "agt_1": Named(name="guide", id="agt_1"),
        "system": Named(name="system"),
        "org_1": Named(name="org_1"),
    }


async def test_a_link_leads_where_the_reader_may_go(ports: dict[str, Any]) -> None:
    run = a_run()
    ports["get_run"].execute.return_value = run
    ports["get_schedule"].execute.return_value.id = "sch_1"
    names = ResourceNames(**ports)
    for role, links in (
        (Role.ADMIN, ["/console/keys", "/console/people", "/console/schedules/sch_1", f"/console/runs/{run.id}"]),
        (Role.VIEWER, [None, None, "/console/schedules", f"/console/runs/{run.id}"]),
    ):
        found = await names.of(a_principal(role), ["key_1", "usr_1", "schedule:sch_1", run.id])
        assert [named.link for named in found.values()] == links


async def test_a_failure_that_is_no_absence_is_not_hidden(ports: dict[str, Any]) -> None:
    ports["get_run"].execute.side_effect = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away.")
    with pytest.raises(ServiceError, match="Away"):
        await ResourceNames(**ports).of(a_principal(), ["run_1"])
