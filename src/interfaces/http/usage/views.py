"""Usage as JSON."""

from typing import TypedDict

from domain.usage.daily_usage import UsageSum


class UsageView(TypedDict):
    """A sum; null fields are those summed over. `cost_usd` excludes `unpriced_calls`. The tokens of `estimated_calls` are
    estimates: their provider reported none."""

    day: str | None
    agent_id: str | None
    model: str | None
    model_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float
    unpriced_calls: int
    estimated_calls: int


class UsagePage(TypedDict):
    """A page of sums; `next_cursor` is null on the last one."""

    data: list[UsageView]
    next_cursor: str | None


def usage_view(entry: UsageSum) -> UsageView:
    """A sum as JSON; money is a number."""
    return {
        "day": None if entry.day is None else entry.day.isoformat(),
        "agent_id": entry.agent_id,
        "model": entry.model,
        "model_calls": entry.model_calls,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cached_tokens": entry.cached_tokens,
        "reasoning_tokens": entry.reasoning_tokens,
        "cost_usd": float(entry.cost_usd),
        "unpriced_calls": entry.unpriced_calls,
        "estimated_calls": entry.estimated_calls,
    }
