"""Usage by who started runs: people, API keys and schedules, from the newest runs of a period."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from io import StringIO
from typing import TypeAlias

from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.usage.ports import UsageFilter
from domain.identity.api_key import Principal
from domain.runs.run import Run
from interfaces.console.charts import Chart, Series, columns
from interfaces.console.form_values import FormValues
from interfaces.console.run_starters import RunStarters
from interfaces.console.usage_pages import plain, wanted_of

MOST_RUNS = 2_000
"""Newest runs of a period that are read: sums by day have no column for who started them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What runs used."""

    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    def __add__(self, other: "Used") -> "Used":
        return Used(
            runs=self.runs + other.runs,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


UsedByDay: TypeAlias = dict[tuple[str, date], Used]
"""By who started the runs, and the day."""
_NOTHING = Used()


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterSum(Used):
    """What the runs of one starter used."""

    starter: str
    name: str


class UsagePeople:
    """Rules:
    - Runs count on the day on which they were created. Runs that retention removed are missing.
    - Runs of workflows and of other agents count for who started the first one.
    """

    def __init__(self, *, list_runs: ListRuns, run_starters: RunStarters, clock: Clock) -> None:
        self._list_runs = list_runs
        self._run_starters = run_starters
        self._clock = clock

    async def of(self, principal: Principal, asked: FormValues) -> dict[str, object]:
        """Sums, the dearest first, and the cost by day as a chart. `most_runs` is None if no run was left out. Raises
        INVALID for an invalid period."""
        wanted = wanted_of(asked, self._clock.now().date())
        used, is_bounded = await self._used(principal, wanted)
        sums = await self._sums(principal, used)
        return {
            "people": sums,
            "chart": _cost_by_day(used, sums, wanted),
            "most_runs": MOST_RUNS if is_bounded else None,
        }

    async def table(self, principal: Principal, asked: FormValues) -> tuple[str, str]:
        """The name of a file, which says if runs were left out, and the sums as its CSV. Raises as `of`."""
        used, is_bounded = await self._used(principal, wanted_of(asked, self._clock.now().date()))
        text = StringIO()
        writer = csv.writer(text)
        writer.writerow(("started_by", "name", "runs", "input_tokens", "output_tokens", "cost_usd"))
        for each in await self._sums(principal, used):
            figures = (each.runs, each.input_tokens, each.output_tokens, each.cost_usd)
            writer.writerow((each.starter, plain(each.name), *figures))
        return f"usage-people-newest-{MOST_RUNS}.csv" if is_bounded else "usage-people.csv", text.getvalue()

    async def _sums(self, principal: Principal, used: UsedByDay) -> list[StarterSum]:
        names = await self._run_starters.names(principal, {starter or None for starter, _ in used})
        return starter_sums(used, names)

    async def _used(self, principal: Principal, wanted: UsageFilter) -> tuple[UsedByDay, bool]:
        """Sums of the newest runs, page by page: their contents are not kept."""
        asked = RunFilter(
            agent_id=wanted.agent_id,
            model=wanted.model,
            since=_begin(wanted.since),
            until=_begin(None if wanted.until in (None, date.max) else wanted.until + timedelta(days=1)),
        )
        used: UsedByDay = {}
        left, cursor = MOST_RUNS, None
        while left:
            request = PageRequest(limit=min(left, MAX_PAGE_SIZE), cursor=cursor)
            page = await self._list_runs.execute(principal, asked, request)
            for run in page.items:
                key = run.requested_by or "", run.created_at.astimezone(UTC).date()
                used[key] = used.get(key, _NOTHING) + _used_by(run)
            if (cursor := page.next_cursor) is None:
                return used, False
            left -= len(page.items)
        return used, True


def starter_sums(used: UsedByDay, names: Mapping[str, str]) -> list[StarterSum]:
    by_starter: dict[str, Used] = {}
    for (starter, _), each in used.items():
        by_starter[starter] = by_starter.get(starter, _NOTHING) + each
    sums = [
        StarterSum(starter=starter, name=names.get(starter, "–"), **asdict(each))
        for starter, each in by_starter.items()
    ]
    return sorted(sums, key=lambda each: (-each.cost_usd, -each.input_tokens - each.output_tokens, each.name))


def _cost_by_day(used: UsedByDay, sums: Iterable[StarterSum], wanted: UsageFilter) -> Chart:
    if wanted.since is None or wanted.until is None:
        raise ValueError("a period has two ends")
    days = [wanted.since + timedelta(days=at) for at in range((wanted.until - wanted.since).days + 1)]
    series = [
        Series(name=each.name, values=tuple(float(used.get((each.starter, day), _NOTHING).cost_usd) for day in days))
        for each in sums
        if each.cost_usd
    ]
    nothing = Series(name="", values=(0.0,) * len(days))
    return columns(
        "Cost by day and person", [str(day) for day in days], series or [nothing], lambda usd: f"${usd:,.4f}"
    )


def _used_by(run: Run) -> Used:
    usage = run.usage
    return Used(runs=1, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost_usd=usage.cost_usd)


def _begin(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)
