"""Ports of the usage slice: daily sums, and reservations against daily budgets."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.ids import AgentId, OrganizationId, UserId
from domain.runs.lease import Lease
from domain.teams import Teams
from domain.usage.daily_usage import UsageKey, UsageSum
from domain.usage.tool_usage import ToolUsageSum

BY_AGENT_AND_MODEL = frozenset({UsageKey.DAY, UsageKey.AGENT, UsageKey.MODEL})


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilter:
    """Days from `since` to `until`, both inclusive; None does not restrict. Keys missing in `by`
    are summed over. Of agents that teams own, only those of `teams`."""

    since: date | None = None
    until: date | None = None
    agent_id: AgentId | None = None
    model: str | None = None
    started_by: str | None = None
    by: frozenset[UsageKey] = BY_AGENT_AND_MODEL
    teams: Teams = None


class UsageReports(Protocol):
    """Daily sums. They grow with every step that stores a model's reply (`Step.spent`)."""

    async def page(self, organization_id: OrganizationId, wanted: UsageFilter, request: PageRequest) -> Page[UsageSum]:
        """Newest day first, then by agent, model and who started the runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsageFilter:
    """As `UsageFilter`, for calls of tools, which are summed by day, by tool, or by both. With
    `teams`, only the service's own tools, and those of servers and agents that are there and
    seen."""

    since: date | None = None
    until: date | None = None
    tool: str | None = None
    by: frozenset[UsageKey] = frozenset({UsageKey.TOOL})
    teams: Teams = None


class ToolUsageReports(Protocol):
    """Daily sums of tool calls. They grow when the calls' audit entries are sealed, about a second
    after the calls."""

    async def page(
        self, organization_id: OrganizationId, wanted: ToolUsageFilter, request: PageRequest
    ) -> Page[ToolUsageSum]:
        """Newest day first, then by tool."""

    async def first_day(self, organization_id: OrganizationId) -> date | None:
        """The first day with sums; None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The most that a run may spend on `day`, in USD. It replaces the run's earlier reservation. A
    budget of None does not restrict. `user_id` is the user for whom the run counts, if they have a
    budget; `with_keys` runs of keys that the user made do, too."""

    agent_id: AgentId
    day: date
    amount_usd: Decimal
    organization_budget_usd: Decimal | None
    agent_budget_usd: Decimal | None
    user_id: UserId | None = None
    with_keys: bool = False
    user_budget_usd: Decimal | None = None

    def fits_beside(self, used: Mapping[AgentId, Decimal], used_by_user: Decimal) -> bool:
        """Whether the budgets allow this amount too. `used` is what each agent of the organization
        has spent that day, plus the reservations of other runs; `used_by_user` is that of runs that
        count for the user."""
        by_agent = used.get(self.agent_id, Decimal(0))
        return (
            _holds(self.organization_budget_usd, sum(used.values(), self.amount_usd))
            and _holds(self.agent_budget_usd, by_agent + self.amount_usd)
            and _holds(self.user_budget_usd, used_by_user + self.amount_usd)
        )


def _holds(budget: Decimal | None, spending: Decimal) -> bool:
    return budget is None or spending <= budget


class Reservations(Protocol):
    """Reserved amounts of unfinished runs, so that concurrent runs together stay within a
    budget."""

    async def reserve(self, lease: Lease, wanted: Reservation) -> bool:
        """Reserve the amount if each budget covers the day's cost, the reservations of other queued
        or running runs, and this amount. Otherwise False, and the run keeps its earlier
        reservation. Transactions of one organization are serialized. Raises LeaseLost."""
