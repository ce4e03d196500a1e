"""DeleteAgent: who may delete an agent, and that one with an unfinished run stays."""

import pytest
from pytest_mock import MockerFixture

from application.agents.delete_agent import DeleteAgent, DeleteAgentCommand
from application.agents.ports import AgentStore
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.runs.run import RunStatus
from tests.builders import AGENT, ORG, RUN, a_run, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.state import InMemoryState, StoredRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger


@pytest.fixture
def state() -> InMemoryState:
    """Tables with the agent `guide`."""
    state = InMemoryState()
    state.agents[AGENT] = [an_agent(name="guide")]
    return state


def deleting(agents: AgentStore) -> DeleteAgent:
    return DeleteAgent(agents=agents, clock=FixedClock(), ids=SequentialIds())


def the_agent(principal: Principal, agent: str = "guide") -> DeleteAgentCommand:
    return DeleteAgentCommand(principal=principal, agent=agent)


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("agent", [AGENT, "guide"], ids=["id", "name"])
async def test_an_admin_deletes_an_agent_which_is_audited(state: InMemoryState, agent: str) -> None:
    store = InMemoryAgentStore(state)

    await deleting(store).execute(the_agent(a_principal(), agent))

    assert await store.get(ORG, AGENT) is None
    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.AGENT_DELETED, "key_admin", AGENT)
    assert entry.details == {"name": "guide", "version": 1}


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.IN_PROGRESS, RunStatus.REQUIRES_ACTION])
async def test_an_agent_with_an_unfinished_run_stays(state: InMemoryState, status: RunStatus) -> None:
    store = InMemoryAgentStore(state)
    state.runs[RUN] = StoredRun(run=a_run(status=status))

    with refused("agent_busy"):
        await deleting(store).execute(the_agent(a_principal()))

    assert await store.get(ORG, AGENT) is not None
    assert not state.audit


async def test_an_agent_whose_runs_are_finished_is_deleted_and_its_runs_stay(state: InMemoryState) -> None:
    state.runs[RUN] = StoredRun(run=a_run(status=RunStatus.COMPLETED))

    await deleting(InMemoryAgentStore(state)).execute(the_agent(a_principal()))

    assert AGENT in state.deleted_agents
    assert RUN in state.runs


async def test_an_agent_is_deleted_once(state: InMemoryState) -> None:
    await deleting(InMemoryAgentStore(state)).execute(the_agent(a_principal()))

    with refused("agent_not_found"):
        await deleting(InMemoryAgentStore(state)).execute(the_agent(a_principal()))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("agent", [AGENT, "guide"], ids=["id", "name"])
async def test_an_agent_of_another_organization_is_not_found_and_stays(state: InMemoryState, agent: str) -> None:
    with refused("agent_not_found"):
        await deleting(InMemoryAgentStore(state)).execute(the_agent(a_stranger(), agent))

    assert not state.deleted_agents


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_deletes_agents(mocker: MockerFixture, role: Role) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)

    with refused("role_insufficient"):
        await deleting(agents).execute(the_agent(a_principal(role)))

    agents.find.assert_not_awaited()
    agents.delete.assert_not_awaited()


async def test_an_agent_that_is_deleted_by_another_request_meanwhile_is_not_found(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.find.return_value, agents.delete.return_value = an_agent(name="guide"), False

    with refused("agent_not_found"):
        await deleting(agents).execute(the_agent(a_principal()))


async def test_a_storage_failure_is_not_taken_for_a_missing_agent(mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.find.return_value, agents.delete.side_effect = an_agent(name="guide"), storage_away()

    with refused("storage_unavailable"):
        await deleting(agents).execute(the_agent(a_principal()))
