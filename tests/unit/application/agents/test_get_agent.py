"""GetAgent: who reads an agent, by which names."""

import pytest
from pytest_mock import MockerFixture

from application.agents.ports import AgentStore
from application.agents.queries import GetAgent
from domain.identity.role import Role
from domain.ids import AgentId
from tests.builders import AGENT, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

FIRST, NEWEST = an_agent(name="guide"), an_agent(name="guide", version=2)


@pytest.fixture
def state() -> InMemoryState:
    """Tables with two versions of the agent `guide`."""
    state = InMemoryState()
    state.agents[AGENT] = [FIRST, NEWEST]
    return state


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("agent", [AGENT, "guide"], ids=["id", "name"])
async def test_every_role_reads_the_newest_version_by_id_and_by_name(
    state: InMemoryState, role: Role, agent: str
) -> None:
    get = GetAgent(agents=InMemoryAgentStore(state))

    assert await get.execute(principal=a_principal(role), agent=agent) == NEWEST


async def test_an_id_goes_before_a_name(state: InMemoryState) -> None:
    confusing = an_agent(AgentId("agt_other"), name=AGENT)
    state.agents[confusing.id] = [confusing]

    found = await GetAgent(agents=InMemoryAgentStore(state)).execute(principal=a_principal(), agent=AGENT)

    assert found == NEWEST


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("agent", [AGENT, "guide"], ids=["id", "name"])
async def test_an_agent_of_another_organization_is_not_found(state: InMemoryState, agent: str) -> None:
    with refused("agent_not_found"):
        await GetAgent(agents=InMemoryAgentStore(state)).execute(principal=a_stranger(), agent=agent)


async def test_a_storage_failure_is_not_taken_for_a_missing_agent(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetAgent(agents=agents).execute(principal=a_principal(), agent=AGENT)

    agents.find.assert_not_awaited()
