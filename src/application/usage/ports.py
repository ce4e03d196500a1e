"""Ports of the usage slice: the daily sums, and amounts reserved against daily budgets."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.ids import AgentId, OrganizationId
from domain.runs.lease import Lease
from domain.usage.daily_usage import UsageKey, UsageSum


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilter:
    """Days from `since` to `until`, both included; None does not restrict. Summed over what `by` leaves out."""

    since: date | None = None
    until: date | None = None
    agent_id: AgentId | None = None
    model: str | None = None
    by: frozenset[UsageKey] = frozenset(UsageKey)


class UsageReports(Protocol):
    """Sums that grow with every step that stores a model's reply (`Step.spent`)."""

    async def page(self, organization_id: OrganizationId, wanted: UsageFilter, request: PageRequest) -> Page[UsageSum]:
        """Newest day first, then by agent and model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a run asks to spend on `day` at most, in USD, its former reservation replaced. Budgets that are None do not
    restrict."""

    agent_id: AgentId
    day: date
    amount_usd: Decimal
    organization_budget_usd: Decimal | None
    agent_budget_usd: Decimal | None

    def fits_beside(self, used: Mapping[AgentId, Decimal]) -> bool:
        """Whether the budgets hold if this is spent too; `used` is what each agent of the organization has spent that day
        and other runs have reserved."""
        by_agent = used.get(self.agent_id, Decimal(0))
        return _holds(self.organization_budget_usd, sum(used.values(), self.amount_usd)) and _holds(
            self.agent_budget_usd, by_agent + self.amount_usd
        )


def _holds(budget: Decimal | None, spending: Decimal) -> bool:
    return budget is None or spending <= budget


class Reservations(Protocol):
    """Amounts that unfinished runs may still spend, so that runs side by side stay within a budget together."""

    async def reserve(self, lease: Lease, wanted: Reservation) -> bool:
        """Reserve, if what the day has cost so far, what other runs that are queued or in progress have reserved, and this
        amount fit into each budget together; else False, and the run keeps what it had reserved. One transaction at
        a time per organization. Raises LeaseLost."""
        ...
