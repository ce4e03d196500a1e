"""Model usage of an organization's agents, summed by day, agent, model and who started the runs."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from domain.ids import AgentId


class UsageKey(StrEnum):
    """The keys by which usage can be grouped."""

    DAY = "day"
    AGENT = "agent"
    MODEL = "model"
    PERSON = "person"
    TOOL = "tool"
    """Sums of tool calls, which have no tokens: `ToolUsageSum`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """The usage of one group. `day`, `agent_id`, `model` and `started_by` are None if the sum
    includes all of them.

    - Days are in UTC. `model` has the form `PROVIDER:NAME` and names the model that answered.
    - `started_by` is who or what started the run, as `Run.requested_by`; a called run has that of
      its caller.
    - `input_tokens` includes `cached_tokens`, `output_tokens` includes `reasoning_tokens`.
    - `cost_usd` sums the calls with a known price; `unpriced_calls` counts the others.
    - `estimated_calls`: calls whose provider reported no tokens.
    """

    day: date | None
    agent_id: AgentId | None
    model: str | None
    model_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: Decimal
    unpriced_calls: int
    estimated_calls: int
    started_by: str | None = None
