"""UpdateAgent: what a change makes of an agent, what is left as it is, and what is audited."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.canary_settings import GivenCanary
from application.agents.ports import AgentStore
from application.agents.update_agent import UpdateAgent, UpdateAgentCommand
from domain.agents.agent import Agent
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import AgentId
from domain.policy.canary import CanaryToken
from domain.runs.limits import LimitSettings
from tests.builders import AGENT, ORG, START, after, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.agents.settings import no_such_model, passing_checks

STORED = an_agent(
    name="guide",
    instructions="Be kind.",
    limits=LimitSettings(max_turns=5, max_cost_usd=Decimal("0.5"), timeout_s=60.0),
    tool_allowlist=(),
    canary_tokens=(CanaryToken(id="vault", secret="tell-no-one"),),
)


class Ports:
    """The agent `guide` in memory, and checks that let all settings pass."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.agents[AGENT] = [STORED]
        self.agents: AgentStore = InMemoryAgentStore(self.state)
        self.checks: MockType = passing_checks(mocker)
        self._ids = SequentialIds()

    async def update(self, **command: Any) -> Agent:
        """Change `guide`, unless `command` says otherwise, ten seconds after it was created."""
        updating = UpdateAgent(agents=self.agents, checks=self.checks, clock=FixedClock(after(10)), ids=self._ids)
        defaults: dict[str, Any] = {"principal": a_principal(), "agent": "guide"}
        return await updating.execute(UpdateAgentCommand(**(defaults | command)))

    def assert_unchanged(self) -> None:
        assert self.state.agents == {AGENT: [STORED]}
        assert not self.state.audit


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C1")
async def test_a_change_makes_a_new_version_and_fields_not_named_stay(ports: Ports) -> None:
    changed = await ports.update(changes={"instructions": "Be brief.", "name": "short"})

    assert (changed.id, changed.version) == (AGENT, 2)
    assert changed.config == replace(STORED.config, instructions="Be brief.", name="short")
    assert (changed.created_at, changed.updated_at) == (START, after(10))
    assert ports.state.agents[AGENT] == [STORED, changed]


@pytest.mark.requirement("A7", "C1")
async def test_limits_are_merged_one_by_one_and_none_takes_one_away(ports: Ports) -> None:
    changed = await ports.update(limits={"max_turns": 8, "max_cost_usd": None})

    assert changed.config.limits == LimitSettings(max_turns=8, timeout_s=60.0)


@pytest.mark.requirement("C2")
async def test_an_allowlist_can_be_taken_away(ports: Ports) -> None:
    assert (await ports.update(changes={"tool_allowlist": None})).config.tool_allowlist is None


@pytest.mark.requirement("C4")
async def test_canary_tokens_stay_when_they_are_not_named_and_can_be_named_by_id_alone(ports: Ports) -> None:
    unnamed = await ports.update(changes={"instructions": "Be brief."})
    named = await ports.update(canary_tokens=(GivenCanary(id="vault"),), changes={"instructions": "Be kind."})
    gone = await ports.update(canary_tokens=())

    assert unnamed.config.canary_tokens == named.config.canary_tokens == STORED.config.canary_tokens
    assert gone.config.canary_tokens == ()


@pytest.mark.requirement("C5")
async def test_a_change_is_audited_with_the_names_of_the_changed_fields(ports: Ports) -> None:
    await ports.update(changes={"instructions": "Be brief.", "name": "short"})

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.AGENT_UPDATED, "key_admin", AGENT)
    assert entry.details == {"name": "short", "version": 2, "changed": ["name", "instructions"]}


async def test_a_change_of_nothing_makes_no_version_and_no_audit_entry(ports: Ports) -> None:
    same = await ports.update(changes={"instructions": "Be kind."}, limits={"max_turns": 5})

    assert same == STORED
    ports.checks.config_of.assert_not_awaited()
    ports.assert_unchanged()


async def test_the_result_as_a_whole_must_be_valid(ports: Ports) -> None:
    ports.checks.config_of.side_effect = no_such_model()

    with refused("agent_invalid"):
        await ports.update(changes={"instructions": "Be brief."})

    by, checked = ports.checks.config_of.await_args.args
    assert (by.organization_id, checked.instructions, checked.model) == (ORG, "Be brief.", STORED.config.model)
    ports.assert_unchanged()


async def test_a_change_of_a_version_that_was_overtaken_is_refused(ports: Ports) -> None:
    first = await ports.update(changes={"instructions": "1"}, expected_version=1)

    with pytest.raises(ServiceError) as caught:
        await ports.update(changes={"instructions": "2"}, expected_version=1)

    assert (caught.value.code, caught.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    assert ports.state.agents[AGENT] == [STORED, first]


async def test_a_change_that_another_one_overtakes_while_it_is_stored_is_refused(
    ports: Ports, mocker: MockerFixture
) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.find.return_value = STORED
    agents.save.side_effect = ServiceError("version_conflict", ErrorKind.PRECONDITION, "It is at version 2.")
    ports.agents = agents

    with refused("version_conflict"):
        await ports.update(changes={"instructions": "2"})

    assert agents.save.await_args.kwargs["expected_version"] == 1


async def test_the_name_of_another_agent_is_refused(ports: Ports) -> None:
    other = an_agent(AgentId("agt_other"), name="taken")
    ports.state.agents[other.id] = [other]

    with refused("agent_name_taken"):
        await ports.update(changes={"name": "taken"})

    assert ports.state.agents[AGENT] == [STORED]


async def test_an_unknown_agent_is_not_found(ports: Ports) -> None:
    with refused("agent_not_found"):
        await ports.update(agent="other")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("agent", [AGENT, "guide"], ids=["id", "name"])
async def test_an_agent_of_another_organization_is_not_found(ports: Ports, agent: str) -> None:
    with refused("agent_not_found"):
        await ports.update(agent=agent, principal=a_stranger(), changes={"enabled": False})

    ports.assert_unchanged()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_changes_agents(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.update(principal=a_principal(role), changes={"enabled": False})

    ports.checks.config_of.assert_not_awaited()
    ports.assert_unchanged()


async def test_a_storage_failure_is_not_taken_for_a_missing_agent(ports: Ports, mocker: MockerFixture) -> None:
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.find.side_effect = storage_away()
    ports.agents = agents

    with refused("storage_unavailable"):
        await ports.update(changes={"enabled": False})

    agents.save.assert_not_awaited()
