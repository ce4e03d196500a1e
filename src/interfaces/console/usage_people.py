"""Usage by who started runs: people, API keys and schedules."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO

from application.system.ports import Clock
from application.usage.ports import UsageFilter
from application.usage.queries import GetUsage
from domain.identity.api_key import Principal
from domain.usage.daily_usage import UsageKey, UsageSum
from interfaces.console.charts import Chart, Series, columns
from interfaces.console.form_values import FormValues
from interfaces.console.run_starters import RunStarters
from interfaces.console.usage_pages import wanted_of
from interfaces.console.whole_lists import all_of
from interfaces.spreadsheets import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterSum:
    """What the runs of one starter used."""

    starter: str
    name: str
    sums: UsageSum


class UsagePeople:
    """Rules:
    - Model calls count on their own day.
    - Runs of workflows and of other agents count for who started the first one.
    """

    def __init__(self, *, get_usage: GetUsage, run_starters: RunStarters, clock: Clock) -> None:
        self._get_usage = get_usage
        self._run_starters = run_starters
        self._clock = clock

    async def of(self, principal: Principal, asked: FormValues) -> dict[str, object]:
        """Sums, the dearest first, and the cost by day as a chart. Raises INVALID for an invalid
        period."""
        wanted = wanted_of(asked, self._clock.now().date())
        sums = await self._sums(principal, wanted)
        by_day = await self._used(principal, wanted, UsageKey.DAY, UsageKey.PERSON)
        return {"people": sums, "chart": _cost_by_day(by_day, sums, wanted)}

    async def table(self, principal: Principal, asked: FormValues) -> str:
        """The sums as CSV. Raises as `of`."""
        text = StringIO()
        writer = csv.writer(text)
        writer.writerow(("started_by", "name", "model_calls", "input_tokens", "output_tokens", "cost_usd"))
        for each in await self._sums(principal, wanted_of(asked, self._clock.now().date())):
            sums = each.sums
            figures = (sums.model_calls, sums.input_tokens, sums.output_tokens, sums.cost_usd)
            writer.writerow((each.starter, plain(each.name), *figures))
        return text.getvalue()

    async def _sums(self, principal: Principal, wanted: UsageFilter) -> list[StarterSum]:
        used = await self._used(principal, wanted, UsageKey.PERSON)
        return starter_sums(used, await self._run_starters.names(principal, (each.started_by for each in used)))

    async def _used(self, principal: Principal, wanted: UsageFilter, *by: UsageKey) -> tuple[UsageSum, ...]:
        grouped = replace(wanted, by=frozenset(by))
        return await all_of(lambda page: self._get_usage.execute(principal=principal, wanted=grouped, page=page))


def starter_sums(used: Iterable[UsageSum], names: Mapping[str, str]) -> list[StarterSum]:
    sums = [
        StarterSum(starter=each.started_by or "", name=names.get(each.started_by or "", "–"), sums=each)
        for each in used
    ]
    return sorted(
        sums, key=lambda each: (-each.sums.cost_usd, -each.sums.input_tokens - each.sums.output_tokens, each.name)
    )


def _cost_by_day(used: Iterable[UsageSum], sums: Iterable[StarterSum], wanted: UsageFilter) -> Chart:
    if wanted.since is None or wanted.until is None:
        raise ValueError("a period has two ends")
    costs: dict[tuple[str | None, date | None], Decimal] = {(each.started_by, each.day): each.cost_usd for each in used}
    days = [wanted.since + timedelta(days=at) for at in range((wanted.until - wanted.since).days + 1)]
    series = [
        Series(name=each.name, values=tuple(float(costs.get((each.starter, day), 0)) for day in days))
        for each in sums
        if each.sums.cost_usd
    ]
    nothing = Series(name="", values=(0.0,) * len(days))
    return columns(
        "Cost by day and person", [str(day) for day in days], series or [nothing], lambda usd: f"${usd:,.4f}"
    )
