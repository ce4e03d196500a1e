"""AgentChecks: everything wrong with an agent's settings is found at once, by path and with the
nearest name."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture

from application.agents.agent_checks import AgentChecks
from application.agents.ports import ModelDirectory
from application.mcp.ports import McpServerStore
from application.policy.policy_checks import PolicyChecks
from application.policy.ports import SchemaValidator
from domain.agents.agent import AgentConfig, AgentSettings
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import McpServerId, OrganizationId
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import ModelSettings
from domain.runs.usage import ModelUsage
from domain.tools.capabilities import ToolType
from tests.builders import ORG, OTHER_ORG, a_server, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.agents.settings import MODEL, SETTINGS
from tests.unit.application.team_ports import team_checks

OTHER_MODEL = "anthropic:claude-haiku"


class KnownModels:
    """A `ModelDirectory` of two models."""

    async def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        return None if model in (MODEL, OTHER_MODEL) else f"there is no model {model!r}"

    async def not_taken(self, organization_id: OrganizationId, model: str, settings: ModelSettings) -> tuple[str, ...]:
        return ("seed",) if model == MODEL and settings.seed is not None else ()


class FlatPrices:
    """A `PriceTable` with a price for all models but `unpriced`."""

    def __init__(self, unpriced: Iterable[str] = ()) -> None:
        self._unpriced = frozenset(unpriced)

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        return None if model in self._unpriced else Decimal("0.001")


class SomeNativeTools:
    """A `NativeToolDirectory` of an installation without search."""

    native_types = (ToolType.CODE_EXECUTION, ToolType.SEND_EMAIL)


class Ports:
    """ORG has the MCP server `files` and the agent `researcher`, the other organization the server
    `foreign`."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = state = InMemoryState()
        foreign = a_server(McpServerId("mcp_foreign"), organization_id=OTHER_ORG, slug="foreign")
        state.servers = {server.id: server for server in (a_server(slug="files"), foreign)}
        researcher = an_agent()
        state.agents[researcher.id] = [researcher]
        self.models: ModelDirectory = KnownModels()
        self.prices = FlatPrices()
        self.schemas = mocker.create_autospec(SchemaValidator, instance=True)
        self.servers: McpServerStore = InMemoryMcpServerStore(state)
        self._agents = InMemoryAgentStore(state)

    async def config_of(
        self, settings: AgentSettings, organization_id: OrganizationId = ORG, by: Principal | None = None
    ) -> AgentConfig:
        checks = AgentChecks(
            models=self.models,
            prices=self.prices,
            native_tools=SomeNativeTools(),
            servers=self.servers,
            agents=self._agents,
            policies=PolicyChecks(schemas=self.schemas),
            schemas=self.schemas,
            team_checks=team_checks(self.state),
        )
        return await checks.config_of(by or a_principal(organization_id=organization_id), settings)

    async def faults_of(self, settings: AgentSettings, organization_id: OrganizationId = ORG) -> dict[str, str]:
        """What is wrong with the settings: message by path."""
        with pytest.raises(ServiceError) as caught:
            await self.config_of(settings, organization_id)
        assert (caught.value.code, caught.value.kind) == ("agent_invalid", ErrorKind.INVALID)
        return {violation.path: violation.message for violation in caught.value.violations}


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C1")
async def test_valid_settings_become_a_configuration_with_the_same_values(ports: Ports) -> None:
    config = await ports.config_of(SETTINGS)

    assert config.tools == (ToolType.CODE_EXECUTION,)
    assert AgentSettings.of(config) == SETTINGS


@pytest.mark.requirement("H3")
async def test_a_setting_that_the_model_refuses_is_reported_and_one_that_a_fallback_refuses_is_not(
    ports: Ports,
) -> None:
    seeded = replace(SETTINGS, model_settings=ModelSettings(seed=1, top_p=0.5))
    assert set(await ports.faults_of(seeded)) == {"model_settings.seed"}
    other = replace(seeded, model=OTHER_MODEL, fallback_models=(MODEL,))
    assert (await ports.config_of(other)).model_settings == seeded.model_settings


async def test_everything_wrong_with_an_agent_is_reported_at_once_with_its_path(ports: Ports) -> None:
    faults = await ports.faults_of(
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
        (replace(SETTINGS, agents=("reseacher",)), "agents.0", "'researcher'"),
    ],
    ids=["tool", "server", "agent"],
)
async def test_a_typo_is_answered_with_the_nearest_name(
    ports: Ports, settings: AgentSettings, path: str, nearest: str
) -> None:
    assert nearest in (await ports.faults_of(settings))[path]


@pytest.mark.requirement("C6")
async def test_the_names_of_another_organization_are_not_suggested(ports: Ports) -> None:
    faults = await ports.faults_of(replace(SETTINGS, mcp_servers=("foreigm",)))

    assert "did you mean" not in faults["mcp_servers.0"]


async def test_a_server_is_named_by_slug_not_by_id(ports: Ports) -> None:
    assert "mcp_servers.0" in await ports.faults_of(replace(SETTINGS, mcp_servers=(a_server().id,)))


@pytest.mark.requirement("A7")
async def test_a_cost_limit_is_refused_with_a_model_that_has_no_price(ports: Ports) -> None:
    ports.prices = FlatPrices(unpriced=[OTHER_MODEL])
    limited = replace(SETTINGS, fallback_models=(OTHER_MODEL,), limits=LimitSettings(max_cost_usd=Decimal(1)))

    faults = await ports.faults_of(limited)

    assert faults == {"limits.max_cost_usd": f"cannot be enforced for model {OTHER_MODEL}: it has no price"}
    await ports.config_of(replace(limited, limits=LimitSettings()))


@pytest.mark.requirement("A10")
async def test_a_daily_budget_is_refused_with_a_model_that_has_no_price(ports: Ports) -> None:
    ports.prices = FlatPrices(unpriced=[MODEL])

    assert set(await ports.faults_of(replace(SETTINGS, daily_budget_usd=Decimal(5)))) == {"daily_budget_usd"}


@pytest.mark.requirement("C2")
async def test_a_policy_with_a_schema_that_cannot_be_used_is_refused(ports: Ports) -> None:
    ports.schemas.violations.side_effect = ServiceError("schema_invalid", ErrorKind.INVALID, "is not a schema")
    rule = ToolRule(decision=Verdict.ALLOW, arguments_schema={"type": "nonsense"})

    faults = await ports.faults_of(replace(SETTINGS, tool_policies=ToolPolicies(rules=(("send_email", rule),))))

    assert faults == {"tool_policies.send_email.arguments_schema": "is not a schema"}


async def test_an_agent_may_list_itself_and_others_of_its_organization(ports: Ports) -> None:
    listed = replace(SETTINGS, agents=("guide", "researcher"))

    assert (await ports.config_of(listed)).agents == ("guide", "researcher")


@pytest.mark.requirement("C6")
async def test_an_agent_of_another_organization_cannot_be_listed(ports: Ports) -> None:
    listed = replace(SETTINGS, agents=("researcher",), mcp_servers=())

    assert set(await ports.faults_of(listed, OTHER_ORG)) == {"agents.0"}


async def test_a_storage_failure_is_not_taken_for_a_missing_server(ports: Ports, mocker: MockerFixture) -> None:
    ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    ports.servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.config_of(SETTINGS)
