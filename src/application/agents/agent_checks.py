"""Checks an agent's settings: models, native tools, MCP servers."""

from application.agents.model_settings_check import settings_violations
from application.agents.output_schema_check import output_schema_violations
from application.agents.ports import AgentStore, ModelDirectory, NativeToolDirectory
from application.identity.team_checks import TeamChecks
from application.mcp.ports import McpServerStore
from application.models.cost_limit import cost_limit_violations
from application.models.ports import PriceTable
from application.policy.policy_checks import PolicyChecks
from application.policy.ports import SchemaValidator
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.agents.agent import AgentConfig, AgentSettings
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import OrganizationId
from domain.nearest import nearest
from domain.teams import may_use
from domain.tools.capabilities import NATIVE_TYPES, ToolType


class AgentChecks:
    """Creates an AgentConfig from settings, and reports all errors at once, with nearest matches
    for typos. Models must be reachable, tools installed, servers and agents registered in the
    organization; a cost limit requires models with a price, a model setting a model that takes it,
    an output schema one that answers can be checked by. What belongs to a team is used by agents of
    this team only; to the caller who does not see it, it does not exist."""

    def __init__(
        self,
        *,
        models: ModelDirectory,
        prices: PriceTable,
        native_tools: NativeToolDirectory,
        servers: McpServerStore,
        agents: AgentStore,
        policies: PolicyChecks,
        schemas: SchemaValidator,
        team_checks: TeamChecks,
    ) -> None:
        self._teams = team_checks
        self._models = models
        self._prices = prices
        self._native_tools = native_tools
        self._servers = servers
        self._agents = agents
        self._policies = policies
        self._schemas = schemas

    async def config_of(
        self, principal: Principal, settings: AgentSettings, *, former_team: str | None = None
    ) -> AgentConfig:
        """The valid configuration. Raises INVALID `agent_invalid`, one violation per fault."""
        organization_id = principal.organization_id
        native = {kind.value: kind for kind in NATIVE_TYPES}
        wrong: list[Violation] = []
        config = None
        try:
            config = AgentConfig.checked(
                settings, tools=tuple(native[name] for name in settings.tools if name in native)
            )
        except ServiceError as error:
            wrong += error.violations
        wrong += await self._model_violations(
            organization_id, settings, reported={violation.path for violation in wrong}
        )
        if not wrong:
            models = (settings.model, *settings.fallback_models)
            wrong += cost_limit_violations(self._prices, settings.limits.max_cost_usd, models)
            wrong += cost_limit_violations(self._prices, settings.daily_budget_usd, models, path="daily_budget_usd")
        wrong += self._policies.violations(settings.tool_policies)
        if config is not None:
            wrong += output_schema_violations(self._schemas, settings.output_schema)
        wrong += self._tool_violations(settings)
        if (of_team := await self._teams.violation(principal, settings.team, former=former_team)) is not None:
            wrong.append(of_team)
        wrong += await self._server_violations(principal, settings)
        wrong += await self._agent_violations(principal, settings)
        if config is None or wrong:
            raise invalid("agent_invalid", "The agent is not valid.", *wrong)
        return config

    async def _model_violations(
        self, organization_id: OrganizationId, settings: AgentSettings, *, reported: set[str]
    ) -> list[Violation]:
        named = {"model": settings.model}
        named |= {f"fallback_models.{index}": model for index, model in enumerate(settings.fallback_models)}
        wrong = [
            Violation(path=path, message=problem)
            for path, model in named.items()
            if path not in reported and (problem := await self._models.problem_with(organization_id, model)) is not None
        ]
        refused = await self._models.not_taken(organization_id, settings.model, settings.model_settings)
        return wrong + settings_violations(settings.model, refused)

    def _tool_violations(self, settings: AgentSettings) -> list[Violation]:
        native = sorted(kind.value for kind in NATIVE_TYPES)
        wrong = []
        for index, name in enumerate(settings.tools):
            if name == ToolType.MCP_TOOL:
                message = "is not a native tool; list MCP servers in mcp_servers"
            elif name not in native:
                message = f"there is no native tool {name!r}{_nearest(name, native)}"
            elif name not in self._native_tools.native_types:
                message = f"the tool {name!r} is not available in this installation"
            else:
                continue
            wrong.append(Violation(path=f"tools.{index}", message=message))
        return wrong

    async def _server_violations(self, principal: Principal, settings: AgentSettings) -> list[Violation]:
        missing, wrong = [], []
        for index, slug in enumerate(settings.mcp_servers):
            server = await self._servers.get(principal.organization_id, slug)
            if server is None or server.config.slug != slug or not principal.sees(server.team):
                missing.append((index, slug))
            elif not may_use(settings.team, server.team):
                message = f"the MCP server {slug!r} belongs to the team {server.team!r}: only its agents use it"
                wrong.append(Violation(path=f"mcp_servers.{index}", message=message))
        if not missing:
            return wrong
        request = PageRequest(limit=MAX_PAGE_SIZE).seen_by(principal)
        registered = await self._servers.page(principal.organization_id, request)
        slugs = [server.config.slug for server in registered.items]
        return wrong + [
            Violation(path=f"mcp_servers.{index}", message=f"there is no MCP server {slug!r}{_nearest(slug, slugs)}")
            for index, slug in missing
        ]

    async def _agent_violations(self, principal: Principal, settings: AgentSettings) -> list[Violation]:
        missing, wrong = [], []
        for index, name in enumerate(settings.agents):
            agent = None if name == settings.name else await self._agents.find(principal.organization_id, name)
            if name != settings.name and (agent is None or not principal.sees(agent.team)):
                missing.append((index, name))
            elif agent is not None and not may_use(settings.team, agent.team):
                message = f"the agent {name!r} belongs to the team {agent.team!r}: only its agents call it"
                wrong.append(Violation(path=f"agents.{index}", message=message))
        if not missing:
            return wrong
        request = PageRequest(limit=MAX_PAGE_SIZE).seen_by(principal)
        known = await self._agents.page(principal.organization_id, request)
        names = [agent.config.name for agent in known.items]
        return wrong + [
            Violation(path=f"agents.{index}", message=f"there is no agent {name!r}{_nearest(name, names)}")
            for index, name in missing
        ]


def _nearest(name: str, options: list[str]) -> str:
    near = nearest(name, options)
    return f"; did you mean {near!r}?" if near is not None else ""
