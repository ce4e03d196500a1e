"""Agents: a model, instructions, tools and limits under a name. Every change creates a new
version."""

from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from domain.errors import Violation, invalid
from domain.ids import AgentId, OrganizationId
from domain.json_value import JsonObject
from domain.policy.canary import CanaryToken, canary_violations
from domain.policy.rules import NO_POLICIES, ToolPolicies
from domain.runs.admission import bound_violations
from domain.runs.lane import Lane
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.runs.output import size_violations
from domain.teams import Teams, teams_of
from domain.tools.capabilities import NATIVE_TYPES, ToolType


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings of an agent as a client writes them.

    - `model` and `fallback_models` have the form `PROVIDER:NAME`.
    - `tools` are kinds of native tools, not validated here; `mcp_servers` are slugs. Empty means
      none.
    - `tool_allowlist` holds model-facing names or globs. None applies only the organization's
      allowlist; an empty list allows nothing.
    - `tool_policies` can only tighten the organization's policies.
    - `agents` names the agents that gateway clients may start from this agent's toolset.
    - `independent_agents` names those of `agents` that this agent's allowlist and policies do not
      apply to.
    - `description` describes this agent to those clients.
    - `model_settings` are sent to the model, and to fallback models that take them.
    - `daily_budget_usd` bounds the total cost of its runs on one UTC day.
    - `output_schema` is the JSON Schema of the answers of its runs.
    - `lane` is that of its runs, unless a run or schedule states another.
    - `max_queued` of its runs may be queued at most, and `max_running` be in progress. None sets no
      bound.
    - `team` is the group that it belongs to; None: to the organization.
    - `reasoning_summary`: models are asked for summaries of their reasoning, which are shown.
    """

    name: str
    model: str
    fallback_models: tuple[str, ...] = ()
    instructions: str = ""
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    tool_allowlist: tuple[str, ...] | None = None
    tool_policies: ToolPolicies = NO_POLICIES
    limits: LimitSettings = LimitSettings()
    model_settings: ModelSettings = NO_SETTINGS
    daily_budget_usd: Decimal | None = None
    canary_tokens: tuple[CanaryToken, ...] = ()
    enabled: bool = True
    description: str = ""
    agents: tuple[str, ...] = ()
    independent_agents: tuple[str, ...] = ()
    reasoning_summary: bool = False
    output_schema: JsonObject | None = None
    lane: Lane = Lane.NORMAL
    max_queued: int | None = None
    max_running: int | None = None
    team: str | None = None

    @classmethod
    def of(cls, config: "AgentConfig") -> "AgentSettings":
        """The settings of a version."""
        return cls(**_values(config))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig(AgentSettings):
    """Valid settings: what a version of an agent consists of."""

    tools: tuple[ToolType, ...] = ()

    @property
    def usable_teams(self) -> Teams:
        """The teams whose servers it may use, beside those of the organization."""
        return teams_of(self.team)

    @classmethod
    def checked(cls, settings: AgentSettings, *, tools: tuple[ToolType, ...]) -> "AgentConfig":
        """The settings with these tools. Raises INVALID `agent_invalid`."""
        return cls(**{**_values(settings), "tools": tools})

    def __post_init__(self) -> None:
        wrong = []
        if not self.name.strip():
            wrong.append(Violation(path="name", message="must not be empty"))
        for path, model in [
            ("model", self.model),
            *((f"fallback_models.{i}", m) for i, m in enumerate(self.fallback_models)),
        ]:
            provider, _, name = model.partition(":")
            if not provider or not name:
                wrong.append(
                    Violation(path=path, message="must have the form PROVIDER:NAME, such as openai:gpt-5-mini")
                )
        for index, kind in enumerate(self.tools):
            if kind not in NATIVE_TYPES:
                wrong.append(
                    Violation(path=f"tools.{index}", message="is not a native tool; list MCP servers in mcp_servers")
                )
        if self.daily_budget_usd is not None and self.daily_budget_usd < 0:
            wrong.append(Violation(path="daily_budget_usd", message="must not be negative"))
        for path, entries in (("tools", self.tools), ("mcp_servers", self.mcp_servers), ("agents", self.agents)):
            if len(set(entries)) != len(entries):
                wrong.append(Violation(path=path, message="names an entry twice"))
        wrong += [
            Violation(path=f"independent_agents.{index}", message="is not in agents")
            for index, name in enumerate(self.independent_agents)
            if name not in self.agents
        ]
        wrong += [
            Violation(path=f"tool_policies.{pattern}.overridable", message="is for rules of organizations only")
            for pattern, rule in self.tool_policies.rules
            if rule.overridable
        ]
        wrong += bound_violations(self.max_queued, self.max_running)
        wrong += size_violations(self.output_schema)
        wrong += canary_violations(self.canary_tokens, self.instructions)
        if wrong:
            raise invalid("agent_invalid", "The agent is not valid.", *wrong)

    @property
    def models(self) -> tuple[str, ...]:
        """The model and its fallbacks, in the order they are tried."""
        return (self.model, *self.fallback_models)


def _values(settings: AgentSettings) -> dict[str, Any]:
    return {field.name: getattr(settings, field.name) for field in fields(settings)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    id: AgentId
    organization_id: OrganizationId
    version: int
    config: AgentConfig
    created_at: datetime
    updated_at: datetime

    @property
    def team(self) -> str | None:
        """The group that the agent belongs to; None: to the organization."""
        return self.config.team
