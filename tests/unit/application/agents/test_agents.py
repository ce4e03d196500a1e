"""Agents: creation, versions, what is checked, deletion."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from application.agents.agent_checks import AgentChecks
from application.agents.agent_settings import AgentSettings
from application.agents.create_agent import CreateAgent, CreateAgentCommand
from application.agents.delete_agent import DeleteAgent, DeleteAgentCommand
from application.agents.get_agent import GetAgent, GetAgentCommand
from application.agents.list_agent_versions import ListAgentVersions, ListAgentVersionsCommand
from application.agents.list_agents import ListAgents, ListAgentsCommand
from application.agents.update_agent import UpdateAgent, UpdateAgentCommand
from application.policy.policy_checks import PolicyChecks
from domain.agents.agent import Agent
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import McpServerId, OrganizationId
from domain.runs.limits import LimitSettings
from domain.runs.usage import ModelUsage
from domain.tools.capabilities import ToolType
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas import JsonSchemaValidator
from tests.builders import OTHER_ORG, RUN, a_new_run, a_run, a_server, a_thread, an_audit_event
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.unit.application.actors import a_principal, a_stranger

MODEL = "openai:gpt-5-mini"
OTHER_MODEL = "anthropic:claude-haiku"
SETTINGS = AgentSettings(name="guide", model=MODEL, tools=("code_execution",), mcp_servers=("files",))


class KnownModels:
    """A `ModelDirectory` of two models."""

    async def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        return None if model in (MODEL, OTHER_MODEL) else f"nobody offers {model!r}"


class FlatPrices:
    """A `PriceTable` with a price for all but the models named."""

    def __init__(self) -> None:
        self.unpriced: set[str] = set()

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        return None if model in self.unpriced else Decimal("0.001")


class SomeNativeTools:
    """A `NativeToolDirectory` of an installation without search."""

    native_types = (ToolType.CODE_EXECUTION, ToolType.SEND_EMAIL)


class Agents:
    """The agents slice over in-memory tables, with an MCP server `files`."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.state.servers[a_server().id] = a_server(slug="files")
        foreign = a_server(McpServerId("mcp_foreign"), organization_id=OTHER_ORG, slug="foreign")
        self.state.servers[foreign.id] = foreign
        store = InMemoryAgentStore(self.state)
        self.prices = FlatPrices()
        checks = AgentChecks(
            models=KnownModels(),
            prices=self.prices,
            native_tools=SomeNativeTools(),
            servers=InMemoryMcpServerStore(self.state),
            agents=store,
            policies=PolicyChecks(schemas=JsonSchemaValidator()),
        )
        clock, ids = StepClock(), SequentialIds()
        self.create = CreateAgent(agents=store, checks=checks, clock=clock, ids=ids)
        self.update = UpdateAgent(agents=store, checks=checks, clock=clock, ids=ids)
        self.get = GetAgent(agents=store)
        self.list = ListAgents(agents=store)
        self.versions = ListAgentVersions(agents=store)
        self.delete = DeleteAgent(agents=store, clock=clock, ids=ids)

    async def make(self, settings: AgentSettings = SETTINGS) -> Agent:
        return await self.create.execute(CreateAgentCommand(principal=a_principal(), settings=settings))

    async def faults_of(self, settings: AgentSettings) -> dict[str, str]:
        """What is wrong with the settings: message by path. Nothing may have been stored."""
        with pytest.raises(ServiceError) as refused:
            await self.make(settings)
        assert (refused.value.code, refused.value.kind) == ("agent_invalid", ErrorKind.INVALID)
        assert self.state.agents == {}
        return {violation.path: violation.message for violation in refused.value.violations}

    def audit(self) -> list[tuple[AuditAction, object]]:
        return [(entry.action, entry.details.get("changed")) for entry in self.state.audit.values()]


@pytest.fixture
def agents() -> Agents:
    return Agents()


async def test_an_agent_begins_at_version_1(agents: Agents) -> None:
    agent = await agents.make()
    assert agent.version == 1
    assert agent.config.tools == (ToolType.CODE_EXECUTION,)
    assert agents.audit() == [(AuditAction.AGENT_CREATED, None)]


async def test_an_agent_is_found_by_id_and_by_name(agents: Agents) -> None:
    agent = await agents.make()
    for name in (agent.id, "guide"):
        assert await agents.get.execute(GetAgentCommand(principal=a_principal(), agent=name)) == agent


async def test_everything_wrong_with_an_agent_is_reported_at_once_with_its_path(agents: Agents) -> None:
    faults = await agents.faults_of(
        AgentSettings(
            name=" ",
            model="gpt",
            fallback_models=(OTHER_MODEL, "openai:gpt-9"),
            tools=("code_exection", "code_execution", "internet_search", "mcp_tool"),
            mcp_servers=("files", "fils", "foreign"),
        )
    )
    assert set(faults) == {
        "name",
        "model",
        "fallback_models.1",
        "tools.0",
        "tools.2",
        "tools.3",
        "mcp_servers.1",
        "mcp_servers.2",
    }


@pytest.mark.parametrize(
    ("settings", "path", "nearest"),
    [
        (replace(SETTINGS, tools=("code_exection",)), "tools.0", "'code_execution'"),
        (replace(SETTINGS, mcp_servers=("flies",)), "mcp_servers.0", "'files'"),
    ],
)
async def test_a_typo_is_answered_with_the_nearest_name(
    agents: Agents, settings: AgentSettings, path: str, nearest: str
) -> None:
    assert nearest in (await agents.faults_of(settings))[path]


async def test_the_names_of_another_organization_are_not_suggested(agents: Agents) -> None:
    faults = await agents.faults_of(replace(SETTINGS, mcp_servers=("foreigm",)))
    assert "did you mean" not in faults["mcp_servers.0"]


async def test_a_server_is_named_by_slug_not_by_id(agents: Agents) -> None:
    assert "mcp_servers.0" in await agents.faults_of(replace(SETTINGS, mcp_servers=(a_server().id,)))


@pytest.mark.requirement("C1")
async def test_a_change_makes_a_new_version_and_leaves_the_rest(agents: Agents) -> None:
    agent = await agents.make()
    changed = await agents.update.execute(
        UpdateAgentCommand(
            principal=a_principal(), agent=agent.id, changes={"instructions": "Be brief.", "name": "short"}
        )
    )
    assert changed.version == 2
    assert changed.config == replace(agent.config, instructions="Be brief.", name="short")
    assert changed.updated_at > agent.updated_at == agent.created_at == changed.created_at
    assert agents.audit()[-1] == (AuditAction.AGENT_UPDATED, ["name", "instructions"])
    versions = await agents.versions.execute(ListAgentVersionsCommand(principal=a_principal(), agent="short"))
    assert [version.config.instructions for version in versions.items] == ["Be brief.", ""]


async def test_limits_are_merged_one_by_one_and_null_takes_one_away(agents: Agents) -> None:
    agent = await agents.make(
        replace(SETTINGS, limits=LimitSettings(max_turns=5, max_cost_usd=Decimal("0.5"), timeout_s=60.0))
    )
    changed = await agents.update.execute(
        UpdateAgentCommand(principal=a_principal(), agent=agent.id, limits={"max_turns": 8, "max_cost_usd": None})
    )
    assert changed.config.limits == LimitSettings(max_turns=8, timeout_s=60.0)


async def test_an_allowlist_can_be_taken_away(agents: Agents) -> None:
    agent = await agents.make(replace(SETTINGS, tool_allowlist=()))
    changed = await agents.update.execute(
        UpdateAgentCommand(principal=a_principal(), agent=agent.id, changes={"tool_allowlist": None})
    )
    assert (agent.config.tool_allowlist, changed.config.tool_allowlist) == ((), None)


async def test_a_change_of_nothing_makes_no_version_and_no_audit_entry(agents: Agents) -> None:
    agent = await agents.make()
    same = await agents.update.execute(
        UpdateAgentCommand(principal=a_principal(), agent=agent.id, changes={"model": MODEL, "tools": SETTINGS.tools})
    )
    assert same == agent
    assert agents.audit() == [(AuditAction.AGENT_CREATED, None)]


async def test_a_change_of_an_older_version_is_refused(agents: Agents) -> None:
    agent = await agents.make()
    command = UpdateAgentCommand(
        principal=a_principal(), agent=agent.id, changes={"instructions": "1"}, expected_version=1
    )
    await agents.update.execute(command)
    with pytest.raises(ServiceError) as refused:
        await agents.update.execute(replace(command, changes={"instructions": "2"}))
    assert (refused.value.code, refused.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    current = await agents.get.execute(GetAgentCommand(principal=a_principal(), agent=agent.id))
    assert current.config.instructions == "1"


async def test_a_change_to_something_that_does_not_exist_is_refused(agents: Agents) -> None:
    agent = await agents.make()
    with pytest.raises(ServiceError) as refused:
        await agents.update.execute(
            UpdateAgentCommand(principal=a_principal(), agent=agent.id, changes={"model": "openai:gpt-9"})
        )
    assert [violation.path for violation in refused.value.violations] == ["model"]


async def test_a_name_is_taken_once_and_free_again_after_deletion(agents: Agents) -> None:
    agent = await agents.make()
    with pytest.raises(ServiceError) as refused:
        await agents.make()
    assert refused.value.code == "agent_name_taken"
    await agents.delete.execute(DeleteAgentCommand(principal=a_principal(), agent="guide"))
    assert (await agents.make()).id != agent.id
    assert [action for action, _ in agents.audit()] == [
        AuditAction.AGENT_CREATED,
        AuditAction.AGENT_DELETED,
        AuditAction.AGENT_CREATED,
    ]


async def test_an_agent_with_an_unfinished_run_is_not_deleted(agents: Agents) -> None:
    agent = await agents.make()
    runs = InMemoryRunStore(agents.state, InProcessWakeups())
    await runs.start(a_new_run(a_run(agent_id=agent.id), new_thread=a_thread()))
    with pytest.raises(ServiceError) as refused:
        await agents.delete.execute(DeleteAgentCommand(principal=a_principal(), agent=agent.id))
    assert refused.value.code == "agent_busy"
    await runs.request_cancel(agent.organization_id, RUN, actor="key_admin", at=an_audit_event().at)
    await agents.delete.execute(DeleteAgentCommand(principal=a_principal(), agent=agent.id))


@pytest.mark.requirement("C6")
async def test_an_agent_of_another_organization_does_not_exist(agents: Agents) -> None:
    agent = await agents.make()
    stranger = a_stranger()

    def attempts(name: str) -> list[Awaitable[object]]:
        return [
            agents.get.execute(GetAgentCommand(principal=stranger, agent=name)),
            agents.versions.execute(ListAgentVersionsCommand(principal=stranger, agent=name)),
            agents.update.execute(UpdateAgentCommand(principal=stranger, agent=name)),
            agents.delete.execute(DeleteAgentCommand(principal=stranger, agent=name)),
        ]

    for attempt in [*attempts(agent.id), *attempts("guide")]:
        with pytest.raises(ServiceError) as refused:
            await attempt
        assert refused.value.code == "agent_not_found"
    assert (await agents.list.execute(ListAgentsCommand(principal=stranger))).items == ()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_agents_are_changed_by_admins_and_read_by_all(agents: Agents, role: Role) -> None:
    agent = await agents.make()
    principal = a_principal(role)
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: agents.create.execute(CreateAgentCommand(principal=principal, settings=replace(SETTINGS, name="x"))),
        lambda: agents.update.execute(
            UpdateAgentCommand(principal=principal, agent=agent.id, changes={"enabled": False})
        ),
        lambda: agents.delete.execute(DeleteAgentCommand(principal=principal, agent=agent.id)),
    ]
    for attempt in attempts:
        with pytest.raises(ServiceError) as refused:
            await attempt()
        assert refused.value.kind is ErrorKind.FORBIDDEN
    assert (await agents.list.execute(ListAgentsCommand(principal=principal))).items == (agent,)


@pytest.mark.requirement("A2")
async def test_a_cost_limit_is_refused_with_a_model_that_has_no_price() -> None:
    agents = Agents()
    agents.prices.unpriced = {OTHER_MODEL}
    limited = replace(SETTINGS, fallback_models=(OTHER_MODEL,), limits=LimitSettings(max_cost_usd=Decimal(1)))
    faults = await agents.faults_of(limited)
    assert faults == {"limits.max_cost_usd": f"cannot be enforced for model {OTHER_MODEL}: it has no price"}
    await agents.make(replace(limited, limits=LimitSettings()))


@pytest.mark.requirement("F5")
async def test_an_agent_may_list_itself_and_others_of_its_organization(agents: Agents) -> None:
    faults = await agents.faults_of(replace(SETTINGS, agents=("guide", "guied")))
    assert set(faults) == {"agents.1"}
    await agents.make()
    front = await agents.make(replace(SETTINGS, name="front", agents=("guide", "front"), mcp_servers=()))
    assert front.config.agents == ("guide", "front")
    stranger = CreateAgentCommand(principal=a_stranger(), settings=replace(SETTINGS, agents=("front",), mcp_servers=()))
    with pytest.raises(ServiceError) as refused:
        await agents.create.execute(stranger)
    assert [violation.path for violation in refused.value.violations] == ["agents.0"]
