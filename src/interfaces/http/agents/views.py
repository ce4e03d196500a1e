"""Agents and limits as JSON."""

from collections.abc import Mapping
from typing import Annotated, TypedDict

from domain.agents.agent import Agent
from domain.runs.lane import Lane
from domain.runs.limits import LimitSettings
from domain.threads.message_json import timestamp
from domain.tools.capabilities import ToolType
from interfaces.http.agents.model_settings_views import ModelSettingsView, model_settings_view
from interfaces.http.tool_policy_views import ToolRuleView, policies_view
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, UpdatedAt, Version, Warnings


class LimitsView(TypedDict):
    """Limits as configured; null where unset."""

    max_turns: Annotated[int | None, "Turns of one run: model calls whose tool calls are executed."]
    max_tool_calls: Annotated[int | None, "Tool calls of one run."]
    max_calls_per_turn: Annotated[int | None, "Executed tool calls of one reply; the others get a text."]
    max_tokens: Annotated[int | None, "Input and output tokens together."]
    max_cost_usd: Annotated[float | None, "Most that one run may cost, in USD. Requires models with a known price."]
    context_tokens: Annotated[int | None, "Size to which the context is trimmed."]
    timeout_s: Annotated[float | None, "Active time of one run, in seconds."]
    turn_tool_timeout_s: Annotated[float | None, "Most seconds for all tool calls of one turn."]
    tool_timeout_s: Annotated[float | None, "Most seconds for one tool call."]
    model_attempts: Annotated[int | None, "Attempts of one model call."]
    model_retry_s: Annotated[float | None, "Seconds that the attempts of one model call may wait in all."]


class CanaryView(TypedDict):
    """A canary token without its text."""

    id: Annotated[str, "Id of the token. `[canary:ID]` replaces the token where it is found."]
    per_run: Annotated[bool, "Whether each run gets its own token in place of `{{canary:ID}}`."]


class AgentView(TypedDict):
    """An agent at one version."""

    id: Annotated[str, "Id of the agent."]
    name: Annotated[str, "Unique in the organization."]
    model: Annotated[str, "The model, as `PROVIDER:NAME`."]
    fallback_models: Annotated[list[str], "Tried in order when the model fails."]
    instructions: Annotated[str, "The system prompt."]
    tools: Annotated[list[ToolType], "Native tools, by type."]
    mcp_servers: Annotated[list[str], "MCP servers, by slug."]
    tool_allowlist: Annotated[
        list[str] | None, "Tool names or globs. Null uses the organization's allowlist; `[]` allows nothing."
    ]
    tool_policies: Annotated[dict[str, ToolRuleView], "Rules by tool name or glob."]
    limits: Annotated[LimitsView, "Limits of its runs."]
    model_settings: Annotated[ModelSettingsView, "Parameters of its model calls."]
    daily_budget_usd: Annotated[
        float | None, "Most that all runs of the agent may cost on one UTC day. Requires models with a known price."
    ]
    canary_tokens: Annotated[list[CanaryView], "Tokens that the agent must never output, without their text."]
    enabled: Annotated[bool, "Whether it may start runs."]
    description: Annotated[str, "Description of this agent for gateway clients that may start it."]
    agents: Annotated[
        list[str], "Names of agents that gateway clients with this agent's tools may start, as `agent__NAME`."
    ]
    independent_agents: Annotated[
        list[str],
        "Names among `agents` whose runs follow their own policies only. For the runs of all others, this agent's "
        "allowlist and policies apply, too.",
    ]
    reasoning_summary: Annotated[
        bool, "Whether models are asked for summaries of their reasoning, published as `reasoning.delta`."
    ]
    output_schema: Annotated[
        Mapping[str, object] | None,
        "JSON Schema of the answers of its runs, of type object. The matching object is the `output_json` of a run.",
    ]
    lane: Annotated[Lane, "The lane of its runs, unless a run or schedule states another."]
    max_queued: Annotated[int | None, "Most of its runs that may be queued; null: any number."]
    max_running: Annotated[int | None, "Most of its runs that may be in progress; null: any number."]
    team: Annotated[
        str | None,
        "Name of the group that it belongs to: others neither see nor use it. Null: it belongs to the organization.",
    ]
    version: Version
    created_at: CreatedAt
    updated_at: UpdatedAt


class SavedAgentView(AgentView):
    """A saved agent; `warnings` name its policies that match no tool."""

    warnings: Warnings


class AgentPage(TypedDict):
    """A page of agents; `next_cursor` is null on the last one."""

    data: Items[AgentView]
    next_cursor: NextCursor


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
        "tools": list(config.tools),
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
        "output_schema": config.output_schema,
        "lane": config.lane,
        "max_queued": config.max_queued,
        "max_running": config.max_running,
        "team": config.team,
        "version": agent.version,
        "created_at": timestamp(agent.created_at),
        "updated_at": timestamp(agent.updated_at),
    }
