"""What has a name is read once while a name is typed, for each caller."""

import pytest
from pytest_mock import MockerFixture

from application.agents.queries import ListAgents
from application.groups.queries import ListGroups
from application.identity.queries import ListApiKeys, ListIdentityProviders, ListOrganizations, ListUsers
from application.mcp.queries import ListMcpServers
from application.model_providers.queries import ListModelProviders
from application.roles.queries import ListCustomRoles
from application.runs.queries import ListRuns
from application.schedules.queries import ListSchedules
from application.secrets.queries import ListSecrets
from application.system.pages import Page
from application.threads.queries import ListConversations
from application.workflows.queries import ListWorkflows
from domain.identity.role import Role
from interfaces.console.named import KEPT_S, Named
from interfaces.console.routes.palette import Palette
from tests.builders import an_agent
from tests.doubles.surroundings import FixedClock
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")


async def test_names_are_read_once_in_some_seconds_for_each_caller(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(ListAgents, instance=True)
    agents.execute.return_value = Page(items=(an_agent(),))
    servers = mocker.create_autospec(ListMcpServers, instance=True)
    workflows = mocker.create_autospec(ListWorkflows, instance=True)
    schedules = mocker.create_autospec(ListSchedules, instance=True)
    for each in (servers, workflows, schedules):
        each.execute.return_value = Page(items=())
    clock = FixedClock()
    named = Named(
        list_agents=agents,
        list_mcp_servers=servers,
        list_workflows=workflows,
        list_schedules=schedules,
        list_users=mocker.create_autospec(ListUsers, instance=True),
        list_groups=mocker.create_autospec(ListGroups, instance=True),
        list_custom_roles=mocker.create_autospec(ListCustomRoles, instance=True),
        list_api_keys=mocker.create_autospec(ListApiKeys, instance=True),
        list_secrets=mocker.create_autospec(ListSecrets, instance=True),
        list_model_providers=mocker.create_autospec(ListModelProviders, instance=True),
        list_identity_providers=mocker.create_autospec(ListIdentityProviders, instance=True),
        list_organizations=mocker.create_autospec(ListOrganizations, instance=True),
        clock=clock,
    )
    viewer, runner = a_principal(Role.VIEWER), a_principal(Role.RUNNER)

    first = await named.of(viewer)

    assert [each.kind for each in first] == ["Agent"]
    assert await named.of(viewer) == first
    assert agents.execute.await_count == 1
    await named.of(runner)
    assert agents.execute.await_count == 2
    clock.advance(KEPT_S)
    await named.of(viewer)
    assert agents.execute.await_count == 3


async def test_one_character_finds_pages_alone(mocker: MockerFixture) -> None:
    named = mocker.create_autospec(Named, instance=True)
    named.of.return_value = ()
    palette = Palette(
        named=named,
        list_conversations=mocker.create_autospec(ListConversations, instance=True),
        list_runs=mocker.create_autospec(ListRuns, instance=True),
    )
    found = await palette.found(a_principal(Role.VIEWER), "a")
    assert {each.kind for each in found} <= {"Page", "Help", "Action"}
    named.of.assert_not_awaited()
    await palette.found(a_principal(Role.VIEWER), "ag")
    named.of.assert_awaited_once()
