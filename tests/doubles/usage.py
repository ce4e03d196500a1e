"""Daily sums of usage and reservations against daily budgets, in memory."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from application.runs.ports import LeaseLost
from application.system.pages import Page, PageRequest
from application.usage.ports import Reservation, UsageFilter
from domain.ids import AgentId, OrganizationId
from domain.runs.lease import Lease
from domain.runs.run import Run, RunStatus
from domain.runs.usage import ModelSpending
from domain.teams import sees
from domain.usage.daily_usage import UsageKey, UsageSum
from tests.doubles.owners import team_of
from tests.doubles.paging import SortKey, oldest_first
from tests.doubles.state import InMemoryState

_Keys = tuple[date | None, AgentId | None, str | None, str | None]


class InMemoryUsageStore:
    """The ports `UsageReports` and `Reservations` over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def page(self, organization_id: OrganizationId, wanted: UsageFilter, request: PageRequest) -> Page[UsageSum]:
        """Newest day first, then by agent, model and who started the runs."""
        groups: dict[_Keys, list[ModelSpending]] = {}
        for run, spending in self._state.spent:
            if run.organization_id == organization_id and _matches(run, spending, wanted) and _has_starter(run, wanted):
                if not sees(wanted.teams, team_of(self._state, run.agent_id)):
                    continue
                groups.setdefault(_keys(run, spending, wanted), []).append(spending)
        return oldest_first([_sum(keys, spent) for keys, spent in groups.items()], _order, request)

    async def reserve(self, lease: Lease, wanted: Reservation) -> bool:
        """Reserve, if it fits."""
        if self._state.held(lease) is None:
            raise LeaseLost(lease.run_id)
        used: dict[AgentId, Decimal] = {}
        by_user = Decimal(0)
        for run, spending in self._state.spent:
            if run.organization_id == lease.organization_id and spending.at.date() == wanted.day:
                cost = spending.usage.cost_usd or Decimal(0)
                used[run.agent_id] = used.get(run.agent_id, Decimal(0)) + cost
                by_user += cost if self._counts_for(run, wanted) else 0
        for run_id, (agent_id, amount) in self._state.reservations.items():
            run = self._state.runs[run_id].run
            spends = run.status in (RunStatus.QUEUED, RunStatus.IN_PROGRESS)
            if spends and run.organization_id == lease.organization_id and run_id != lease.run_id:
                used[agent_id] = used.get(agent_id, Decimal(0)) + amount
                by_user += amount if self._counts_for(run, wanted) else 0
        if not wanted.fits_beside(used, by_user):
            return False
        self._state.reservations[lease.run_id] = (wanted.agent_id, wanted.amount_usd)
        return True

    def _counts_for(self, run: Run, wanted: Reservation) -> bool:
        return wanted.user_id is not None and self._state.counts_for(
            run.requested_by, wanted.user_id, with_keys=wanted.with_keys
        )


def _matches(run: Run, spending: ModelSpending, wanted: UsageFilter) -> bool:
    day = spending.at.date()
    return (
        (wanted.since is None or day >= wanted.since)
        and (wanted.until is None or day <= wanted.until)
        and wanted.agent_id in (None, run.agent_id)
        and wanted.model in (None, spending.model)
    )


def _has_starter(run: Run, wanted: UsageFilter) -> bool:
    """Sums by person are of runs that have one."""
    is_of_anyone = UsageKey.PERSON not in wanted.by and wanted.started_by is None
    return is_of_anyone or (run.requested_by is not None and wanted.started_by in (None, run.requested_by))


def _keys(run: Run, spending: ModelSpending, wanted: UsageFilter) -> _Keys:
    return (
        spending.at.date() if UsageKey.DAY in wanted.by else None,
        run.agent_id if UsageKey.AGENT in wanted.by else None,
        spending.model if UsageKey.MODEL in wanted.by else None,
        run.requested_by if UsageKey.PERSON in wanted.by else None,
    )


def _sum(keys: _Keys, spent: Iterable[ModelSpending]) -> UsageSum:
    day, agent_id, model, started_by = keys
    used = [spending.usage for spending in spent]
    return UsageSum(
        day=day,
        agent_id=agent_id,
        model=model,
        started_by=started_by,
        model_calls=len(used),
        input_tokens=sum(entry.input_tokens for entry in used),
        output_tokens=sum(entry.output_tokens for entry in used),
        cached_tokens=sum(entry.cached_tokens for entry in used),
        reasoning_tokens=sum(entry.reasoning_tokens for entry in used),
        cost_usd=sum((entry.cost_usd or Decimal(0) for entry in used), Decimal(0)),
        unpriced_calls=sum(entry.cost_usd is None for entry in used),
        estimated_calls=sum(entry.estimated for entry in used),
    )


def _order(entry: UsageSum) -> SortKey:
    """Falling days as rising numbers."""
    day = 0 if entry.day is None else date.max.toordinal() - entry.day.toordinal()
    return (f"{day:08d}", f"{entry.agent_id or ''} {entry.model or ''} {entry.started_by or ''}")
