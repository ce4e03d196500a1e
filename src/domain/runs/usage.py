"""What a run has consumed, in the units it is limited by."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """One model call's tokens and price. `input_tokens` includes `cached_tokens` (read from the provider's prompt cache)
    and `cache_write_tokens` (put there, which some providers charge extra); `cost_usd` is None for unpriced models."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpending:
    """One model call for the sums of its day: `model` is the one that answered, `PROVIDER:NAME`. `still_reserved_usd` is what
    the run keeps of the amount it had reserved for the day; None if it had reserved nothing."""

    model: str
    usage: ModelUsage
    at: datetime
    still_reserved_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Running totals of a run. `cost_usd` counts what could be priced."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    turns: int = 0
    tool_calls: int = 0

    @property
    def tokens(self) -> int:
        """Input and output together, the figure `max_tokens` limits."""
        return self.input_tokens + self.output_tokens

    def after_turn(self, spent: ModelUsage, *, tool_calls: int = 0) -> "Usage":
        """The totals after one more model call, and so many more executed tool calls."""
        return Usage(
            input_tokens=self.input_tokens + spent.input_tokens,
            output_tokens=self.output_tokens + spent.output_tokens,
            cached_tokens=self.cached_tokens + spent.cached_tokens,
            cost_usd=self.cost_usd + spent.cost_usd if spent.cost_usd else self.cost_usd,
            turns=self.turns + 1,
            tool_calls=self.tool_calls + tool_calls,
        )

    def after_abandoned(self, spent: ModelUsage) -> "Usage":
        """The totals after a model call that was cut off: it is paid for, but was no turn."""
        return replace(self.after_turn(spent), turns=self.turns)

    def after_tool_calls(self, count: int) -> "Usage":
        """The totals after `count` more executed tool calls."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            cost_usd=self.cost_usd,
            turns=self.turns,
            tool_calls=self.tool_calls + count,
        )
