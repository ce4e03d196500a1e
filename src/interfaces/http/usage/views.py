"""Usage as JSON."""

from typing import Annotated, TypedDict

from domain.usage.daily_usage import UsageSum
from domain.usage.tool_usage import ToolUsageSum
from interfaces.http.view_fields import Format, Items, NextCursor


class UsageView(TypedDict):
    """A sum. By tool it has the figures of tool calls, and those of models are 0."""

    day: Annotated[Annotated[str, Format("date")] | None, "The UTC day; null if summed over."]
    agent_id: Annotated[str | None, "Id of the agent; null if summed over."]
    model: Annotated[str | None, "The model; null if summed over."]
    started_by: Annotated[
        str | None,
        "Who started the runs: the id of a user or an API key, or `schedule:` and the id of a schedule; null if summed over.",
    ]
    tool: Annotated[str | None, "The tool by the name that models see; null if summed over, and in sums of models."]
    tool_calls: Annotated[int | None, "Number of tool calls of runs and gateway sessions; null unless summed by tool."]
    failed_tool_calls: Annotated[int | None, "Number of tool calls that failed; null unless summed by tool."]
    blocked_tool_calls: Annotated[int | None, "Number of tool calls that policy blocked; null unless summed by tool."]
    tool_ms: Annotated[int | None, "Milliseconds of the tool calls that were sent; null unless summed by tool."]
    model_calls: Annotated[int, "Number of model calls."]
    input_tokens: Annotated[int, "Input tokens, cached ones included."]
    output_tokens: Annotated[int, "Output tokens, those of reasoning included."]
    cached_tokens: Annotated[int, "Input tokens that the provider had cached."]
    reasoning_tokens: Annotated[int, "Output tokens that the model spent on reasoning."]
    cost_usd: Annotated[float, "Cost in USD, without unpriced calls."]
    unpriced_calls: Annotated[int, "Number of calls of models without a known price."]
    estimated_calls: Annotated[int, "Number of calls whose tokens are estimated: their provider reported none."]


class UsagePage(TypedDict):
    """A page of sums; `next_cursor` is null on the last one."""

    data: Items[UsageView]
    next_cursor: NextCursor


def usage_view(entry: UsageSum) -> UsageView:
    """A sum as JSON; money is a number."""
    return {
        "day": None if entry.day is None else entry.day.isoformat(),
        "agent_id": entry.agent_id,
        "model": entry.model,
        "started_by": entry.started_by,
        "tool": None,
        "tool_calls": None,
        "failed_tool_calls": None,
        "blocked_tool_calls": None,
        "tool_ms": None,
        "model_calls": entry.model_calls,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cached_tokens": entry.cached_tokens,
        "reasoning_tokens": entry.reasoning_tokens,
        "cost_usd": float(entry.cost_usd),
        "unpriced_calls": entry.unpriced_calls,
        "estimated_calls": entry.estimated_calls,
    }


def tool_usage_view(entry: ToolUsageSum) -> UsageView:
    """A sum of tool calls in the same shape."""
    return {
        "day": None if entry.day is None else entry.day.isoformat(),
        "agent_id": None,
        "model": None,
        "started_by": None,
        "tool": entry.tool,
        "tool_calls": entry.calls,
        "failed_tool_calls": entry.failed_calls,
        "blocked_tool_calls": entry.blocked_calls,
        "tool_ms": entry.duration_ms,
        "model_calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "cost_usd": 0.0,
        "unpriced_calls": 0,
        "estimated_calls": 0,
    }
