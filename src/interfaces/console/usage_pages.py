"""Data of the usage page: sums of a period by day, agent and model, with bars."""

import asyncio
import csv
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO

from application.agents.queries import ListAgents
from application.system.ports import Clock
from application.usage.ports import UsageFilter
from application.usage.queries import GetUsage
from domain.errors import ServiceError, invalid
from domain.identity.api_key import Principal
from domain.ids import AgentId
from domain.usage.daily_usage import UsageKey, UsageSum
from interfaces.console.charts import Chart, Series, columns, compact
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.whole_lists import all_of
from interfaces.spreadsheets import plain

DAYS = 30
MAX_DAYS = 366
PERIODS = (7, 30, 90, 365)
SPLITS = {"model": UsageKey.MODEL, "agent": UsageKey.AGENT}
"""What the columns of the cost are made of."""
_FIGURES = (
    "model_calls",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_usd",
    "unpriced_calls",
    "estimated_calls",
)
_FIELDS = frozenset({"since", "until", "agent", "model"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of a table: subject, figures, and share of the highest cost (0 to 100)."""

    label: str
    path: str | None
    sums: UsageSum
    share: float


class UsagePages:
    """Rules:
    - The default period is the last thirty days; the longest is a year.
    - Days without usage are shown.
    """

    def __init__(self, *, get_usage: GetUsage, list_agents: ListAgents, clock: Clock) -> None:
        self._get_usage = get_usage
        self._list_agents = list_agents
        self._clock = clock

    async def of(self, principal: Principal, asked: FormValues) -> tuple[dict[str, object], bool]:
        """Data of the template, and whether the form is valid."""
        names = await self._agent_names(principal)
        split = SPLITS.get(asked["split"], UsageKey.MODEL)
        today = self._clock.now().date()
        context: dict[str, object] = {
            "asked": asked,
            "agents": sorted(names.items(), key=lambda entry: entry[1].casefold()),
            "periods": [(days, today - timedelta(days=days - 1), today) for days in PERIODS],
            "faults": NO_FAULTS,
            "days": None,
        }
        try:
            wanted = wanted_of(asked, today)
            by_day, by_agent, by_model, parts = await asyncio.gather(
                self._sums(principal, wanted, UsageKey.DAY),
                self._sums(principal, wanted, UsageKey.AGENT),
                self._sums(principal, wanted, UsageKey.MODEL),
                self._sums(principal, wanted, UsageKey.DAY, split),
            )
        except ServiceError as error:
            if not error.violations:
                raise
            faults = FieldFaults.of(error.violations, lambda path: path if path in _FIELDS else None)
            return context | {"faults": faults}, False
        days = _every_day(by_day, wanted)
        shown = asked.beginning("") | {"since": str(wanted.since), "until": str(wanted.until)}
        return context | {
            "asked": FormValues(shown),
            "days": [_line(each, days, str(each.day), None) for each in reversed(days)],
            "by_agent": [
                _line(each, by_agent, names.get(each.agent_id or "", each.agent_id or ""), _agent_path(each, names))
                for each in _dearest(by_agent)
            ],
            "by_model": [_line(each, by_model, each.model or "", None) for each in _dearest(by_model)],
            "total": _total(by_model),
            "charts": (_costs_by_day(days, parts, split, names), _tokens_by_day(days)),
            "split": split.value,
        }, True

    async def _sums(self, principal: Principal, wanted: UsageFilter, *by: UsageKey) -> tuple[UsageSum, ...]:
        grouped = UsageFilter(
            since=wanted.since,
            until=wanted.until,
            agent_id=wanted.agent_id,
            model=wanted.model,
            by=frozenset(by),
        )
        return await all_of(lambda page: self._get_usage.execute(principal=principal, wanted=grouped, page=page))

    async def table(self, principal: Principal, asked: FormValues) -> str:
        """The usage of each day, agent and model as CSV. Raises INVALID for an invalid period."""
        names = await self._agent_names(principal)
        wanted = wanted_of(asked, self._clock.now().date())
        sums = await self._sums(principal, wanted, UsageKey.DAY, UsageKey.AGENT, UsageKey.MODEL)
        text = StringIO()
        writer = csv.writer(text)
        writer.writerow(("day", "agent", "agent_id", "model", *_FIGURES))
        for each in sums:
            name = names.get(each.agent_id or "", "")
            figures = (getattr(each, figure) for figure in _FIGURES)
            writer.writerow((each.day, plain(name), each.agent_id, plain(each.model or ""), *figures))
        return text.getvalue()

    async def _agent_names(self, principal: Principal) -> dict[str, str]:
        """Names by agent id; deleted agents are absent."""
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        return {agent.id: agent.config.name for agent in agents}


def wanted_of(asked: FormValues, today: date) -> UsageFilter:
    """Raises INVALID for an invalid day and for too long periods."""
    until = _day(asked, "until") or today
    since = _day(asked, "since") or date.fromordinal(max(until.toordinal() - DAYS + 1, 1))
    if (until - since).days >= MAX_DAYS:
        asked.note("since", f"is more than {MAX_DAYS} days before the last one")
    if asked.wrong:
        raise invalid("usage_days_invalid", "The period is not valid.", *asked.wrong)
    agent, model = asked["agent"].strip(), asked["model"].strip()
    return UsageFilter(since=since, until=until, agent_id=AgentId(agent) if agent else None, model=model or None)


def _day(asked: FormValues, name: str) -> date | None:
    text = asked[name].strip()
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        asked.note(name, "must be a day, such as 2026-07-01")
        return None


def _every_day(sums: tuple[UsageSum, ...], wanted: UsageFilter) -> tuple[UsageSum, ...]:
    """One sum per day, oldest first, including days without usage."""
    if wanted.since is None or wanted.until is None:
        raise ValueError("a period has two ends")
    known = {each.day: each for each in sums}
    count = (wanted.until - wanted.since).days + 1
    days = (wanted.since + timedelta(days=index) for index in range(count))
    return tuple(known.get(day) or _nothing(day) for day in days)


def _nothing(day: date | None) -> UsageSum:
    return UsageSum(
        day=day,
        agent_id=None,
        model=None,
        model_calls=0,
        input_tokens=0,
        output_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        cost_usd=Decimal(0),
        unpriced_calls=0,
        estimated_calls=0,
    )


def _total(sums: tuple[UsageSum, ...]) -> UsageSum:
    return UsageSum(
        day=None,
        agent_id=None,
        model=None,
        model_calls=sum(each.model_calls for each in sums),
        input_tokens=sum(each.input_tokens for each in sums),
        output_tokens=sum(each.output_tokens for each in sums),
        cached_tokens=sum(each.cached_tokens for each in sums),
        reasoning_tokens=sum(each.reasoning_tokens for each in sums),
        cost_usd=sum((each.cost_usd for each in sums), Decimal(0)),
        unpriced_calls=sum(each.unpriced_calls for each in sums),
        estimated_calls=sum(each.estimated_calls for each in sums),
    )


def _tokens(sums: UsageSum) -> Decimal:
    return Decimal(sums.input_tokens + sums.output_tokens)


def _dearest(sums: tuple[UsageSum, ...]) -> list[UsageSum]:
    return sorted(sums, key=lambda each: (-each.cost_usd, -_tokens(each)))


def _line(each: UsageSum, among: tuple[UsageSum, ...], label: str, path: str | None) -> Line:
    """A row. Without any price, tokens are compared."""
    most = max(one.cost_usd for one in among)
    value, whole = (each.cost_usd, most) if most else (_tokens(each), max(map(_tokens, among)))
    return Line(label=label, path=path, sums=each, share=float(100 * value / whole) if whole else 0.0)


def _agent_path(each: UsageSum, names: Mapping[str, str]) -> str | None:
    return f"/console/agents/{each.agent_id}" if each.agent_id in names else None


def _costs_by_day(
    days: tuple[UsageSum, ...], sums: tuple[UsageSum, ...], split: UsageKey, names: Mapping[str, str]
) -> Chart:
    """Columns of the cost of each day, made of models or agents; what costs most is at the
    bottom."""
    costs: dict[str, dict[date | None, float]] = defaultdict(dict)
    for each in sums:
        part = each.model if split is UsageKey.MODEL else names.get(each.agent_id or "", each.agent_id)
        costs[part or "–"][each.day] = float(each.cost_usd)
    dearest = sorted(costs, key=lambda part: -sum(costs[part].values()))
    series = [
        Series(name=part, values=tuple(costs[part].get(day.day, 0.0) for day in days))
        for part in dearest
        if any(costs[part].values())
    ]
    return columns(
        "Cost by day", [str(each.day) for each in days], series or [_no_cost(days)], lambda value: f"${value:,.4f}"
    )


def _no_cost(days: tuple[UsageSum, ...]) -> Series:
    return Series(name="", values=(0.0,) * len(days))


def _tokens_by_day(days: tuple[UsageSum, ...]) -> Chart:
    values = tuple(float(_tokens(each)) for each in days)
    series = [Series(name="tokens", values=values)]
    labels = [str(each.day) for each in days]
    return columns("Tokens by day", labels, series, lambda value: f"{int(value):,} tokens", counts=compact)
