"""Charts of the overview: runs and their durations by hour of the last day, and the cost by day of
two weeks."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.usage.ports import UsageFilter
from application.usage.queries import GetUsage
from domain.identity.api_key import Principal
from domain.runs.run import Run, RunStatus
from domain.usage.daily_usage import UsageKey
from interfaces.console.call_statistics import percentile
from interfaces.console.charts import Chart, Series, columns, compact, lines
from interfaces.console.pages import seconds, took

HOURS = 24
DAYS = 14
MOST_RUNS = 1_000
"""Newest runs of the hours that are drawn."""
_BAD = frozenset({RunStatus.FAILED, RunStatus.HALTED})


class OverviewCharts:
    """Rules:
    - Runs are counted in the hour in which they were created (UTC), the current one included.
    - Durations are those of ended runs, waits for people included.
    """

    def __init__(self, *, list_runs: ListRuns, get_usage: GetUsage, clock: Clock) -> None:
        self._list_runs = list_runs
        self._get_usage = get_usage
        self._clock = clock

    async def of(self, principal: Principal) -> dict[str, object]:
        """By their names in the template."""
        now = self._clock.now()
        first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
        runs, is_cut = await self._newest(principal, first)
        return {
            "runs_chart": runs_by_hour(runs, first),
            "duration_chart": durations_by_hour(runs, first),
            "cost_chart": await self._costs(principal, now),
            "runs_note": f"the newest {MOST_RUNS:,}" if is_cut else "",
        }

    async def _newest(self, principal: Principal, since: datetime) -> tuple[list[Run], bool]:
        found: list[Run] = []
        cursor: str | None = None
        while len(found) < MOST_RUNS:
            request = PageRequest(limit=min(MAX_PAGE_SIZE, MOST_RUNS), cursor=cursor)
            page = await self._list_runs.execute(principal, RunFilter(since=since), request)
            found += page.items
            if (cursor := page.next_cursor) is None:
                return found, False
        return found, True

    async def _costs(self, principal: Principal, now: datetime) -> Chart:
        today = now.date()
        days = [today - timedelta(days=DAYS - 1 - at) for at in range(DAYS)]
        wanted = UsageFilter(since=days[0], until=today, by=frozenset({UsageKey.DAY}))
        page = await self._get_usage.execute(principal=principal, wanted=wanted, page=PageRequest(limit=MAX_PAGE_SIZE))
        costs = {each.day: float(each.cost_usd) for each in page.items}
        series = Series(name="cost", values=tuple(costs.get(day, 0.0) for day in days))
        return columns("Cost by day", [f"{day:%b} {day.day}" for day in days], [series], _dollars)


def runs_by_hour(runs: Sequence[Run], first: datetime) -> Chart:
    """Columns of completed, failed and other runs, by the hour from `first` on."""
    counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for run in runs:
        kind = "failed" if run.status in _BAD else "completed" if run.status is RunStatus.COMPLETED else "other"
        counts[kind][_hour(run, first)] += 1
    series = [
        Series(name=kind, values=tuple(float(counts[kind][hour]) for hour in range(HOURS)))
        for kind in ("completed", "failed", "other")
    ]
    return columns("Runs by hour", _labels(first), series, lambda value: f"{value:,.0f}", prefix="at", counts=compact)


def durations_by_hour(runs: Sequence[Run], first: datetime) -> Chart:
    """Lines of the median and the 95th percentile of the durations of ended runs."""
    lasted: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        duration = took(run)
        if run.status.is_terminal and duration is not None:
            lasted[_hour(run, first)].append(duration)
    series = [
        Series(name=name, values=tuple(percentile(lasted[hour], share) for hour in range(HOURS)))
        for name, share in (("median", 0.5), ("95th percentile", 0.95))
    ]
    return lines("Duration of runs", _labels(first), series, seconds)


def _hour(run: Run, first: datetime) -> int:
    return min(max(int((run.created_at - first).total_seconds() // 3600), 0), HOURS - 1)


def _labels(first: datetime) -> list[str]:
    return [f"{first + timedelta(hours=hour):%H:%M}" for hour in range(HOURS)]


def _dollars(value: float) -> str:
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:,.4f}"
