"""What an organization's agents have used, summed by day, agent and model."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from domain.ids import AgentId


class UsageKey(StrEnum):
    """What usage can be summed by."""

    DAY = "day"
    AGENT = "agent"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """The sum over the days (UTC), agents and models (`PROVIDER:NAME`, the one that answered) that are None, for those that
    are not.

    `input_tokens` includes `cached_tokens`. `cost_usd` counts the calls that could be priced; `unpriced_calls` says how many
    could not.
    """

    day: date | None
    agent_id: AgentId | None
    model: str | None
    model_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: Decimal
    unpriced_calls: int
