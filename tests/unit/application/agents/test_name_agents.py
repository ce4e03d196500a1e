"""NameAgents: names by id, in one query, deleted agents included."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.agents.name_agents import NameAgents
from application.agents.ports import AgentName, AgentStore
from domain.identity.role import Role
from domain.ids import AgentId
from tests.builders import ORG, OTHER_ORG, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

USED, DELETED, THEIRS, UNKNOWN = (AgentId(f"agt_{number}") for number in range(4))


def stored_agents() -> InMemoryAgentStore:
    state = InMemoryState()
    state.agents = {
        USED: [an_agent(USED, name="former"), an_agent(USED, name="guide", version=2)],
        DELETED: [an_agent(DELETED, name="retired")],
        THEIRS: [an_agent(THEIRS, organization_id=OTHER_ORG)],
    }
    state.deleted_agents.add(DELETED)
    return InMemoryAgentStore(state)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_names_of_its_organization_those_of_deleted_agents_too(role: Role) -> None:
    names = await NameAgents(agents=stored_agents()).execute(a_principal(role), (USED, DELETED, THEIRS, UNKNOWN))

    assert names == {USED: AgentName(name="guide", deleted=False), DELETED: AgentName(name="retired", deleted=True)}


async def test_all_names_are_read_in_one_query_each_once(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)

    await NameAgents(agents=agents).execute(a_principal(), (USED, DELETED, USED))

    agents.names.assert_awaited_once_with(ORG, frozenset({USED, DELETED}), teams=None)


@pytest.mark.requirement("P2")
async def test_the_caller_gets_names_of_what_they_see(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    member = replace(a_principal(Role.VIEWER), teams=frozenset({"sales"}))

    await NameAgents(agents=agents).execute(member, (USED,))

    agents.names.assert_awaited_once_with(ORG, frozenset({USED}), teams=frozenset({"sales"}))


async def test_a_storage_failure_is_not_taken_for_agents_without_names(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.names.side_effect = storage_away()

    with refused("storage_unavailable"):
        await NameAgents(agents=agents).execute(a_principal(), (USED,))
