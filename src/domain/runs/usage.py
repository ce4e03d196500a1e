"""Usage of a run, in the units of its limits."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """Tokens and price of one model call.

    - `input_tokens` includes `cached_tokens` (read from the provider's prompt cache) and
      `cache_write_tokens` (written to it, at some providers for an extra price).
    - `output_tokens` includes `reasoning_tokens`.
    - `cost_usd` is None for models without a price.
    - `estimated`: the provider reported no tokens.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: Decimal | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpending:
    """One model call for the sums of its day. `model` is the answering model as `PROVIDER:NAME`.
    `still_reserved_usd` is the rest of the run's reservation; None without a reservation."""

    model: str
    usage: ModelUsage
    at: datetime
    still_reserved_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Totals of a run. `cost_usd` counts models with a price. `output_tokens` includes
    `reasoning_tokens`. `estimated`: a part of the tokens is an estimate."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    turns: int = 0
    tool_calls: int = 0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """Input and output tokens, limited by `max_tokens`."""
        return self.input_tokens + self.output_tokens

    def after_turn(self, spent: ModelUsage, *, tool_calls: int = 0) -> "Usage":
        """The totals after one more model call and `tool_calls` executed tool calls."""
        return Usage(
            input_tokens=self.input_tokens + spent.input_tokens,
            output_tokens=self.output_tokens + spent.output_tokens,
            cached_tokens=self.cached_tokens + spent.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + spent.reasoning_tokens,
            cost_usd=self.cost_usd + spent.cost_usd if spent.cost_usd else self.cost_usd,
            turns=self.turns + 1,
            tool_calls=self.tool_calls + tool_calls,
            estimated=self.estimated or spent.estimated,
        )

    def after_abandoned(self, spent: ModelUsage) -> "Usage":
        """The totals after an interrupted model call: it has a cost, but is not a turn."""
        return replace(self.after_turn(spent), turns=self.turns)
