"""ListAgents: who sees which agents, in which order."""

import pytest
from pytest_mock import MockerFixture

from application.agents.ports import AgentStore
from application.agents.queries import ListAgents
from application.system.pages import PageRequest
from domain.identity.role import Role
from domain.ids import AgentId
from tests.builders import OTHER_ORG, after, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

OLD, CHANGED = (an_agent(AgentId("agt_1"), name="old", version=version) for version in (1, 2))
NEW = an_agent(AgentId("agt_2"), name="new", created_at=after(1))
THEIRS = an_agent(AgentId("agt_3"), name="theirs", organization_id=OTHER_ORG)


def stored_agents() -> InMemoryAgentStore:
    state = InMemoryState()
    state.agents = {OLD.id: [OLD, CHANGED], NEW.id: [NEW], THEIRS.id: [THEIRS]}
    return InMemoryAgentStore(state)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_sees_the_agents_of_its_organization_at_their_newest_version_newest_agent_first(
    role: Role,
) -> None:
    page = await ListAgents(agents=stored_agents()).execute(principal=a_principal(role))

    assert page.items == (NEW, CHANGED)


async def test_agents_are_listed_page_by_page() -> None:
    list_agents = ListAgents(agents=stored_agents())
    first = await list_agents.execute(principal=a_principal(), page=PageRequest(limit=1))
    rest = PageRequest(limit=1, cursor=first.next_cursor)

    last = await list_agents.execute(principal=a_principal(), page=rest)

    assert (first.items, last.items, last.next_cursor) == ((NEW,), (CHANGED,), None)


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListAgents(agents=agents).execute(principal=a_principal())
