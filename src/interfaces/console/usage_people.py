"""Usage by who started runs: people, API keys and schedules, from the newest runs of a period."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from io import StringIO

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
class StarterSum:
    """What the runs of one starter used."""

    starter: str
    name: str
    runs: int
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal


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
        runs, is_bounded = await self._newest(principal, wanted)
        names = await self._run_starters.names(principal, (run.requested_by for run in runs))
        sums = starter_sums(runs, names)
        return {
            "people": sums,
            "chart": _cost_by_day(runs, sums, wanted),
            "most_runs": MOST_RUNS if is_bounded else None,
        }

    async def table(self, principal: Principal, asked: FormValues) -> str:
        """The sums as CSV. Raises as `of`."""
        runs, _ = await self._newest(principal, wanted_of(asked, self._clock.now().date()))
        names = await self._run_starters.names(principal, (run.requested_by for run in runs))
        text = StringIO()
        writer = csv.writer(text)
        writer.writerow(("started_by", "name", "runs", "input_tokens", "output_tokens", "cost_usd"))
        for each in starter_sums(runs, names):
            figures = (each.runs, each.input_tokens, each.output_tokens, each.cost_usd)
            writer.writerow((each.starter, plain(each.name), *figures))
        return text.getvalue()

    async def _newest(self, principal: Principal, wanted: UsageFilter) -> tuple[list[Run], bool]:
        asked = RunFilter(
            agent_id=wanted.agent_id,
            model=wanted.model,
            since=_begin(wanted.since),
            until=_begin(None if wanted.until in (None, date.max) else wanted.until + timedelta(days=1)),
        )
        runs: list[Run] = []
        cursor: str | None = None
        while len(runs) < MOST_RUNS:
            page = await self._list_runs.execute(principal, asked, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
            runs += page.items
            if (cursor := page.next_cursor) is None:
                return runs, False
        return runs, True


def starter_sums(runs: Iterable[Run], names: Mapping[str, str]) -> list[StarterSum]:
    by_starter: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_starter[run.requested_by or ""].append(run)
    sums = [
        StarterSum(
            starter=starter,
            name=names.get(starter, "–"),
            runs=len(each),
            input_tokens=sum(run.usage.input_tokens for run in each),
            output_tokens=sum(run.usage.output_tokens for run in each),
            cost_usd=sum((run.usage.cost_usd for run in each), Decimal(0)),
        )
        for starter, each in by_starter.items()
    ]
    return sorted(sums, key=lambda each: (-each.cost_usd, -each.input_tokens - each.output_tokens, each.name))


def _cost_by_day(runs: Iterable[Run], sums: Iterable[StarterSum], wanted: UsageFilter) -> Chart:
    if wanted.since is None or wanted.until is None:
        raise ValueError("a period has two ends")
    days = [wanted.since + timedelta(days=at) for at in range((wanted.until - wanted.since).days + 1)]
    costs: dict[tuple[str, date], float] = defaultdict(float)
    for run in runs:
        costs[run.requested_by or "", run.created_at.astimezone(UTC).date()] += float(run.usage.cost_usd)
    series = [
        Series(name=each.name, values=tuple(costs.get((each.starter, day), 0.0) for day in days))
        for each in sums
        if each.cost_usd
    ]
    nothing = Series(name="", values=(0.0,) * len(days))
    return columns(
        "Cost by day and person", [str(day) for day in days], series or [nothing], lambda usd: f"${usd:,.4f}"
    )


def _begin(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)
