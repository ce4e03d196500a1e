"""Settings of an agent, and checks that let all of them pass, for tests of the slice."""

from pytest_mock import MockerFixture, MockType

from application.agents.agent_checks import AgentChecks
from domain.agents.agent import AgentConfig, AgentSettings
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.tools.capabilities import ToolType

MODEL = "openai:gpt-5-mini"
SETTINGS = AgentSettings(name="guide", model=MODEL, tools=("code_execution",), mcp_servers=("files",))


def passing_checks(mocker: MockerFixture) -> MockType:
    """`AgentChecks` that find nothing wrong."""
    checks: MockType = mocker.create_autospec(AgentChecks, instance=True)
    checks.config_of.side_effect = _config_of
    return checks


def no_such_model() -> ServiceError:
    """What the checks raise for a model that does not exist."""
    return invalid(
        "agent_invalid", "The agent is not valid.", Violation(path="model", message="there is no such model")
    )


async def _config_of(_: Principal, settings: AgentSettings, *, former_team: str | None = None) -> AgentConfig:
    return AgentConfig(
        name=settings.name,
        model=settings.model,
        fallback_models=settings.fallback_models,
        instructions=settings.instructions,
        tools=tuple(ToolType(name) for name in settings.tools),
        mcp_servers=settings.mcp_servers,
        tool_allowlist=settings.tool_allowlist,
        tool_policies=settings.tool_policies,
        limits=settings.limits,
        daily_budget_usd=settings.daily_budget_usd,
        canary_tokens=settings.canary_tokens,
        enabled=settings.enabled,
        description=settings.description,
        agents=settings.agents,
    )
