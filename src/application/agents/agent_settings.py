"""An agent's settings as a client writes them, and the change of some of them."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypedDict

from domain.agents.agent import AgentConfig
from domain.policy.canary import CanaryToken
from domain.policy.rules import NO_POLICIES, ToolPolicies
from domain.runs.limits import LimitChanges, LimitSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Like AgentConfig, but not checked yet: `tools` are names of native tools that may not exist."""

    name: str
    model: str
    fallback_models: tuple[str, ...] = ()
    instructions: str = ""
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    tool_allowlist: tuple[str, ...] | None = None
    tool_policies: ToolPolicies = NO_POLICIES
    limits: LimitSettings = LimitSettings()
    daily_budget_usd: Decimal | None = None
    canary_tokens: tuple[CanaryToken, ...] = ()
    enabled: bool = True
    description: str = ""
    agents: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: AgentConfig) -> "AgentSettings":
        """The settings that give `config`."""
        return cls(
            name=config.name,
            model=config.model,
            fallback_models=config.fallback_models,
            instructions=config.instructions,
            tools=tuple(kind.value for kind in config.tools),
            mcp_servers=config.mcp_servers,
            tool_allowlist=config.tool_allowlist,
            tool_policies=config.tool_policies,
            limits=config.limits,
            daily_budget_usd=config.daily_budget_usd,
            canary_tokens=config.canary_tokens,
            enabled=config.enabled,
            description=config.description,
            agents=config.agents,
        )

    def changed(self, changes: "AgentChanges", limits: "LimitChanges") -> "AgentSettings":
        """With the given fields replaced. Raises INVALID `limits_invalid`."""
        return replace(self, limits=replace(self.limits, **limits), **changes)


class AgentChanges(TypedDict, total=False):
    """Fields to change, apart from limits; absent ones stay."""

    name: str
    model: str
    fallback_models: tuple[str, ...]
    instructions: str
    tools: tuple[str, ...]
    mcp_servers: tuple[str, ...]
    tool_allowlist: tuple[str, ...] | None
    tool_policies: ToolPolicies
    daily_budget_usd: Decimal | None
    enabled: bool
    description: str
    agents: tuple[str, ...]
