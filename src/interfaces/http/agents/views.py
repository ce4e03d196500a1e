"""Agents and limits as JSON."""

from typing import TypedDict

from domain.agents.agent import Agent
from domain.runs.limits import LimitSettings
from domain.threads.message_json import timestamp
from interfaces.http.agents.model_settings_views import ModelSettingsView, model_settings_view
from interfaces.http.tool_policy_views import ToolRuleView, policies_view


class LimitsView(TypedDict):
    """Limits as configured; null where unset."""

    max_turns: int | None
    max_tool_calls: int | None
    max_calls_per_turn: int | None
    max_tokens: int | None
    max_cost_usd: float | None
    context_tokens: int | None
    timeout_s: float | None
    turn_tool_timeout_s: float | None
    tool_timeout_s: float | None
    model_attempts: int | None
    model_retry_s: float | None


class CanaryView(TypedDict):
    """A canary token without its text."""

    id: str
    per_run: bool


class AgentView(TypedDict):
    """An agent at one version."""

    id: str
    name: str
    model: str
    fallback_models: list[str]
    instructions: str
    tools: list[str]
    mcp_servers: list[str]
    tool_allowlist: list[str] | None
    tool_policies: dict[str, ToolRuleView]
    limits: LimitsView
    model_settings: ModelSettingsView
    daily_budget_usd: float | None
    canary_tokens: list[CanaryView]
    enabled: bool
    description: str
    agents: list[str]
    independent_agents: list[str]
    reasoning_summary: bool
    version: int
    created_at: str
    updated_at: str


class SavedAgentView(AgentView):
    """A saved agent; `warnings` name its policies that match no tool."""

    warnings: list[str]


class AgentPage(TypedDict):
    """A page of agents; `next_cursor` is null on the last one."""

    data: list[AgentView]
    next_cursor: str | None


def limits_view(limits: LimitSettings) -> LimitsView:
    """Limits as JSON; money is a number."""
    return {
        "max_turns": limits.max_turns,
        "max_tool_calls": limits.max_tool_calls,
        "max_calls_per_turn": limits.max_calls_per_turn,
        "max_tokens": limits.max_tokens,
        "max_cost_usd": None if limits.max_cost_usd is None else float(limits.max_cost_usd),
        "context_tokens": limits.context_tokens,
        "timeout_s": limits.timeout_s,
        "turn_tool_timeout_s": limits.turn_tool_timeout_s,
        "tool_timeout_s": limits.tool_timeout_s,
        "model_attempts": limits.model_attempts,
        "model_retry_s": limits.model_retry_s,
    }


def agent_view(agent: Agent) -> AgentView:
    config = agent.config
    return {
        "id": agent.id,
        "name": config.name,
        "model": config.model,
        "fallback_models": list(config.fallback_models),
        "instructions": config.instructions,
        "tools": [kind.value for kind in config.tools],
        "mcp_servers": list(config.mcp_servers),
        "tool_allowlist": None if config.tool_allowlist is None else list(config.tool_allowlist),
        "tool_policies": policies_view(config.tool_policies),
        "limits": limits_view(config.limits),
        "model_settings": model_settings_view(config.model_settings),
        "daily_budget_usd": None if config.daily_budget_usd is None else float(config.daily_budget_usd),
        "canary_tokens": [{"id": token.id, "per_run": token.per_run} for token in config.canary_tokens],
        "enabled": config.enabled,
        "description": config.description,
        "agents": list(config.agents),
        "independent_agents": list(config.independent_agents),
        "reasoning_summary": config.reasoning_summary,
        "version": agent.version,
        "created_at": timestamp(agent.created_at),
        "updated_at": timestamp(agent.updated_at),
    }
