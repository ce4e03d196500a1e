"""Usage by tool: calls of runs and gateway sessions."""

import csv
from collections.abc import Iterable
from datetime import date, timedelta
from io import StringIO

from application.system.pages import Page, PageRequest
from application.system.ports import Clock
from application.usage.ports import ToolUsageFilter, UsageFilter
from application.usage.queries import GetToolUsage
from domain.identity.api_key import Principal
from domain.usage.daily_usage import UsageKey
from domain.usage.tool_usage import ToolUsageSum
from interfaces.console.charts import Chart, Series, columns, compact
from interfaces.console.form_values import FormValues
from interfaces.console.usage_pages import wanted_of
from interfaces.console.whole_lists import all_of
from interfaces.spreadsheets import plain


class UsageTools:
    """Rules:
    - Calls are those of all agents and models: conditions on these do not restrict them.
    - Where the period begins before the first counted call, that day is said.
    """

    def __init__(self, *, get_tool_usage: GetToolUsage, clock: Clock) -> None:
        self._get_usage = get_tool_usage
        self._clock = clock

    async def of(self, principal: Principal, asked: FormValues) -> dict[str, object]:
        """Sums, the most called first, and the calls by day as a chart. Raises INVALID for an
        invalid period."""
        wanted = wanted_of(asked, self._clock.now().date())
        tools, first_day = await self._sums(principal, wanted, UsageKey.TOOL)
        by_day, _ = await self._sums(principal, wanted, UsageKey.DAY, UsageKey.TOOL)
        tools.sort(key=lambda each: (-each.calls, each.tool or ""))
        begins_later = first_day is not None and wanted.since is not None and first_day > wanted.since
        return {
            "tools": tools,
            "chart": _calls_by_day(by_day, tools, wanted),
            "counted_since": first_day if begins_later else None,
            "of_all": bool(wanted.agent_id or wanted.model),
        }

    async def table(self, principal: Principal, asked: FormValues) -> str:
        """The calls of each day and tool as CSV. Raises as `of`."""
        text = StringIO()
        writer = csv.writer(text)
        writer.writerow(("day", "tool", "calls", "failed_calls", "blocked_calls", "duration_ms"))
        wanted = wanted_of(asked, self._clock.now().date())
        sums, _ = await self._sums(principal, wanted, UsageKey.DAY, UsageKey.TOOL)
        for each in sums:
            figures = (each.calls, each.failed_calls, each.blocked_calls, each.duration_ms)
            writer.writerow((each.day, plain(each.tool or ""), *figures))
        return text.getvalue()

    async def _sums(
        self, principal: Principal, wanted: UsageFilter, *by: UsageKey
    ) -> tuple[list[ToolUsageSum], date | None]:
        of_tools = ToolUsageFilter(since=wanted.since, until=wanted.until, by=frozenset(by))
        first_day: date | None = None

        async def page(request: PageRequest) -> Page[ToolUsageSum]:
            nonlocal first_day
            found = await self._get_usage.execute(principal, of_tools, request)
            first_day = found.first_day
            return found.page

        return list(await all_of(page)), first_day


def _calls_by_day(used: Iterable[ToolUsageSum], tools: Iterable[ToolUsageSum], wanted: UsageFilter) -> Chart:
    if wanted.since is None or wanted.until is None:
        raise ValueError("a period has two ends")
    calls = {(each.tool, each.day): each.calls for each in used}
    days = [wanted.since + timedelta(days=at) for at in range((wanted.until - wanted.since).days + 1)]
    series = [
        Series(name=each.tool or "", values=tuple(float(calls.get((each.tool, day), 0)) for day in days))
        for each in tools
    ]
    nothing = Series(name="", values=(0.0,) * len(days))
    return columns(
        "Calls by day and tool",
        [str(day) for day in days],
        series or [nothing],
        lambda count: f"{int(count):,} call{'' if count == 1 else 's'}",
        counts=compact,
    )
