"""Budgets of today as gauges: the organization's, and those of agents and users."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from litestar import Response, get
from litestar.di import NamedDependency

from application.agents.queries import ListAgents
from application.identity.queries import GetOrganization, ListApiKeys
from application.system.ports import Clock
from application.usage.ports import UsageFilter
from application.usage.queries import GetUsage
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from domain.ids import AgentId, ApiKeyId, UserId
from domain.usage.daily_usage import UsageKey, UsageSum
from interfaces.console.pages import Pages
from interfaces.console.rate_limits import RateGauge, RateLimits
from interfaces.console.requests import ConsoleRequest
from interfaces.console.run_limits import RunGauge, RunLimits
from interfaces.console.run_starters import RunStarters
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """What was spent today of a daily budget, in USD. `budget` None: none is set."""

    name: str
    link: str
    spent: Decimal
    budget: Decimal | None

    @property
    def percent(self) -> int | None:
        if self.budget is None:
            return None
        return 100 if not self.budget else min(100, round(100 * self.spent / self.budget))


class Budgets:
    """Reads today's costs, by UTC day as the budgets are."""

    def __init__(
        self,
        *,
        get_organization: GetOrganization,
        list_agents: ListAgents,
        list_api_keys: ListApiKeys,
        get_usage: GetUsage,
        clock: Clock,
    ) -> None:
        self._get_organization = get_organization
        self._list_agents = list_agents
        self._list_keys = list_api_keys
        self._get_usage = get_usage
        self._clock = clock

    async def of(self, principal: Principal) -> dict[str, object]:
        """The organization, and all agents that have a budget or spent something."""
        organization = await self._get_organization.execute(principal)
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        spent = await self._spent(principal)
        gauges = [
            Gauge(
                name=each.config.name,
                link=f"{PATH}/agents/{each.id}",
                spent=spent.get(each.id, Decimal(0)),
                budget=each.config.daily_budget_usd,
            )
            for each in agents
        ]
        return {
            "whole": Gauge(
                name=organization.name,
                link=f"{PATH}/settings",
                spent=sum(spent.values(), Decimal(0)),
                budget=organization.daily_budget_usd,
            ),
            "gauges": _fullest_first(each for each in gauges if each.budget is not None or each.spent),
            "users": _fullest_first(await self._of_users(principal, organization)),
        }

    async def _of_users(self, principal: Principal, organization: Organization) -> list[Gauge]:
        """Users who have a budget, and spent something today or have one by their id."""
        named = organization.user_daily_budgets_usd
        if organization.user_daily_budget_usd is None and not named:
            return []
        sums = await self._sums(principal, UsageKey.PERSON)
        makers = await self._makers(principal) if organization.keys_count_for_users else {}
        spent: dict[str, Decimal] = {}
        for each in sums:
            starter = None if each.started_by is None else ApiKeyId(each.started_by)
            user = None if starter is None else organization.user_behind(starter, makers.get(starter))
            if user is not None:
                spent[user] = spent.get(user, Decimal(0)) + each.cost_usd
        budgets = {UserId(user): organization.budget_of(UserId(user)) for user in {*spent, *named}}
        return [
            Gauge(name=user, link=f"{PATH}/usage", spent=spent.get(user, Decimal(0)), budget=budget)
            for user, budget in budgets.items()
            if budget is not None
        ]

    async def _makers(self, principal: Principal) -> dict[ApiKeyId, UserId | None]:
        """Who made which key; of none for who may not list keys, and users' sums are then without
        them."""
        if not principal.may(Permission.KEYS_MANAGE):
            return {}
        keys = await all_of(lambda page: self._list_keys.execute(principal=principal, page=page))
        return {each.id: each.person_id for each in keys}

    async def _spent(self, principal: Principal) -> dict[AgentId, Decimal]:
        sums = await self._sums(principal, UsageKey.AGENT)
        return {each.agent_id: each.cost_usd for each in sums if each.agent_id is not None}

    async def _sums(self, principal: Principal, by: UsageKey) -> tuple[UsageSum, ...]:
        today = self._clock.now().date()
        wanted = UsageFilter(since=today, until=today, by=frozenset({by}))
        return await all_of(lambda page: self._get_usage.execute(principal, wanted, page))


def _fullest_first(gauges: Iterable[Gauge]) -> list[Gauge]:
    return sorted(gauges, key=lambda each: (-(each.percent or 0), -each.spent, each.name))


@get("/budgets")
async def show_budgets(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    budgets: NamedDependency[Budgets],
    run_limits: NamedDependency[RunLimits],
    rate_limits: NamedDependency[RateLimits],
    run_starters: NamedDependency[RunStarters],
) -> Response[str]:
    """Budgets of today, and runs and calls now of those that may be."""
    principal = request.principal
    context = {**await budgets.of(principal), **await run_limits.of(principal), **await rate_limits.of(principal)}
    users = {each.name for each in cast("list[Gauge]", context["users"])}
    users |= {each.name or "" for each in cast("list[RunGauge]", context["runs_of_users"])}
    users |= {each.name for each in cast("list[RateGauge]", context["rates_of_users"])}
    names = await run_starters.names(principal, users)
    return pages.show(request, "budgets.html", {**context, "names": names})
