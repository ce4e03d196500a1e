"""CreateAgent: an agent at version 1, by whom, under which name, and what is audited."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.canary_settings import GivenCanary
from application.agents.create_agent import CreateAgent, CreateAgentCommand
from application.agents.ports import AgentStore
from domain.agents.agent import Agent, AgentSettings
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import AgentId
from domain.policy.canary import CanaryToken
from tests.builders import ORG, OTHER_ORG, START, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.agents.settings import SETTINGS, no_such_model, passing_checks


class Ports:
    """Agents in memory, and checks that let all settings pass."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.agents: AgentStore = InMemoryAgentStore(self.state)
        self.checks: MockType = passing_checks(mocker)
        self._ids = SequentialIds()

    async def create(
        self,
        settings: AgentSettings = SETTINGS,
        *,
        principal: Principal | None = None,
        canary_tokens: tuple[GivenCanary, ...] = (),
    ) -> Agent:
        creating = CreateAgent(agents=self.agents, checks=self.checks, clock=FixedClock(), ids=self._ids)
        command = CreateAgentCommand(
            principal=principal or a_principal(), settings=settings, canary_tokens=canary_tokens
        )
        return await creating.execute(command)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C1")
async def test_an_agent_begins_at_version_1_in_the_organization_of_its_admin(ports: Ports) -> None:
    agent = await ports.create()

    assert (agent.organization_id, agent.version, agent.config.name) == (ORG, 1, "guide")
    assert agent.created_at == agent.updated_at == START
    assert ports.state.agents == {agent.id: [agent]}


@pytest.mark.requirement("C5")
async def test_a_new_agent_is_audited(ports: Ports) -> None:
    agent = await ports.create()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.AGENT_CREATED, "key_admin", agent.id)
    assert entry.details == {"name": "guide", "version": 1}


async def test_a_name_is_used_once_in_an_organization(ports: Ports) -> None:
    agent = await ports.create()

    with refused("agent_name_taken"):
        await ports.create()

    assert list(ports.state.agents) == [agent.id]
    assert len(ports.state.audit) == 1


async def test_the_name_of_a_deleted_agent_is_free(ports: Ports) -> None:
    deleted = an_agent(AgentId("agt_deleted"), name="guide")
    ports.state.agents[deleted.id] = [deleted]
    ports.state.deleted_agents.add(deleted.id)

    assert (await ports.create()).id != deleted.id


@pytest.mark.requirement("C6")
async def test_another_organization_may_use_the_same_name(ports: Ports) -> None:
    await ports.create()

    assert (await ports.create(principal=a_stranger())).organization_id == OTHER_ORG


async def test_models_tools_and_servers_are_checked_in_the_organization_and_a_fault_stores_nothing(
    ports: Ports,
) -> None:
    ports.checks.config_of.side_effect = no_such_model()

    with refused("agent_invalid"):
        await ports.create()

    ports.checks.config_of.assert_awaited_once_with(a_principal(), SETTINGS)
    assert not ports.state.agents
    assert not ports.state.audit


@pytest.mark.requirement("C4")
async def test_canary_tokens_get_ids_and_are_not_shown_in_the_instructions(ports: Ports) -> None:
    told = replace(SETTINGS, instructions="The vault code is tell-no-one.")

    agent = await ports.create(told, canary_tokens=(GivenCanary(id="vault", token="tell-no-one"),))

    assert agent.config.canary_tokens == (CanaryToken(id="vault", secret="tell-no-one"),)
    assert agent.config.instructions == "The vault code is {{canary:vault}}."
    assert "tell-no-one" not in repr(agent)


@pytest.mark.requirement("C4")
async def test_a_canary_token_without_text_is_refused(ports: Ports) -> None:
    with refused("agent_invalid"):
        await ports.create(canary_tokens=(GivenCanary(id="vault"),))

    ports.checks.config_of.assert_not_awaited()
    assert not ports.state.agents


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_creates_agents(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.create(principal=a_principal(role))

    ports.checks.config_of.assert_not_awaited()
    assert not ports.state.agents


async def test_an_agent_that_cannot_be_stored_is_not_returned(ports: Ports, mocker: MockerFixture) -> None:
    ports.agents = mocker.create_autospec(AgentStore, instance=True)
    ports.agents.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.create()
