"""ListAgentVersions: who reads what an agent was, in which order."""

import pytest
from pytest_mock import MockerFixture

from application.agents.ports import AgentStore
from application.agents.queries import ListAgentVersions
from domain.identity.role import Role
from tests.builders import AGENT, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

FIRST, SECOND = an_agent(name="old name"), an_agent(name="guide", version=2)


def stored_versions() -> InMemoryAgentStore:
    state = InMemoryState()
    state.agents[AGENT] = [FIRST, SECOND]
    return InMemoryAgentStore(state)


@pytest.mark.requirement("C1", "C6")
@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("agent", [AGENT, "guide"], ids=["id", "name"])
async def test_every_role_reads_all_versions_newest_first(role: Role, agent: str) -> None:
    page = await ListAgentVersions(agents=stored_versions()).execute(principal=a_principal(role), agent=agent)

    assert page.items == (SECOND, FIRST)


async def test_a_former_name_finds_no_agent() -> None:
    with refused("agent_not_found"):
        await ListAgentVersions(agents=stored_versions()).execute(principal=a_principal(), agent="old name")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("agent", [AGENT, "guide"], ids=["id", "name"])
async def test_an_agent_of_another_organization_is_not_found(agent: str) -> None:
    with refused("agent_not_found"):
        await ListAgentVersions(agents=stored_versions()).execute(principal=a_stranger(), agent=agent)


async def test_versions_of_an_unknown_agent_are_not_looked_for(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.find.return_value = None

    with refused("agent_not_found"):
        await ListAgentVersions(agents=agents).execute(principal=a_principal(), agent="guide")

    agents.versions.assert_not_awaited()


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.find.return_value, agents.versions.side_effect = SECOND, storage_away()

    with refused("storage_unavailable"):
        await ListAgentVersions(agents=agents).execute(principal=a_principal(), agent="guide")
