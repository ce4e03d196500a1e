"""The overview: runs, failures and cost, what waits for people, budgets, servers in trouble."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from litestar import Response, get
from litestar.di import NamedDependency

from application.agents.name_agents import NameAgents
from application.mcp.describe_mcp_servers import DescribedServer, DescribeMcpServers
from application.mcp.ports import ServerState
from application.mcp.queries import ListMcpServers
from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.system.pages import Page, PageRequest
from application.system.ports import Clock
from application.usage.ports import UsageFilter
from application.usage.queries import GetUsage
from domain.identity.api_key import Principal
from domain.mcp.server import McpServer
from domain.runs.run import Run, RunStatus
from domain.usage.daily_usage import UsageKey
from interfaces.console.inbox import Inbox
from interfaces.console.overview_charts import OverviewCharts
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.budgets import Budgets, Gauge
from interfaces.console.run_costs import RunCosts
from interfaces.console.whole_lists import all_of

RECENT = 100
LATEST = 10
_UNFINISHED = (RunStatus.QUEUED, RunStatus.IN_PROGRESS, RunStatus.REQUIRES_ACTION)
MOST_BUDGETS = 5
MOST_TROUBLED = 5
_TROUBLE = frozenset({ServerState.ERROR, ServerState.UNHEALTHY, ServerState.NEEDS_AUTH, ServerState.NOT_INSTALLED})
_BAD = frozenset({RunStatus.FAILED, RunStatus.HALTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLine(DescribedServer):
    """A server on the pages."""

    @property
    def is_troubled(self) -> bool:
        """Whether a person has to look at the server: an idle one is well."""
        state = self.status.state
        return state in _TROUBLE or (state is ServerState.DISCONNECTED and self.status.last_error is not None)


class Overview:
    """Collects the data of the page, from the newest hundred runs and all servers."""

    def __init__(
        self,
        *,
        list_runs: ListRuns,
        name_agents: NameAgents,
        run_costs: RunCosts,
        inbox: Inbox,
        budgets: Budgets,
        list_mcp_servers: ListMcpServers,
        describe_mcp_servers: DescribeMcpServers,
        get_usage: GetUsage,
        clock: Clock,
    ) -> None:
        self._list_runs = list_runs
        self._name_agents = name_agents
        self._run_costs = run_costs
        self._inbox = inbox
        self._budgets = budgets
        self._list_servers = list_mcp_servers
        self._describe_servers = describe_mcp_servers
        self._get_usage = get_usage
        self._clock = clock

    async def of(self, principal: Principal) -> dict[str, object]:
        """The figures by their names in the template."""
        recent, unfinished, waiting, servers, cost, budgets = await asyncio.gather(
            self._runs(principal, None),
            asyncio.gather(*(self._runs(principal, status) for status in _UNFINISHED)),
            self._inbox.of(principal),
            self.all_servers(principal),
            self._cost_today(principal),
            self._budgets.of(principal),
        )
        ended = Counter(run.status for run in recent if run.status.is_terminal)
        total = sum(ended.values())
        latest = recent[:LATEST]
        troubled = [line for line in servers if line.quarantined or line.is_troubled]
        return {
            "unfinished": [(status.value, _count(runs)) for status, runs in zip(_UNFINISHED, unfinished, strict=True)],
            "ended": sorted((status.value, count) for status, count in ended.items()),
            "error_rate": None if not total else sum(ended[status] for status in _BAD) / total,
            "ended_total": total,
            "waiting": len(waiting),
            "waits": sorted(Counter(item.kind for item in waiting).items(), key=lambda each: -each[1]),
            "soonest": next((item for item in waiting if item.due is not None), None),
            "troubled": troubled[:MOST_TROUBLED],
            "troubled_more": max(0, len(troubled) - MOST_TROUBLED),
            "server_count": len(servers),
            "gauges": [each for each in _gauges(budgets) if each.budget is not None][:MOST_BUDGETS],
            "cost_today": cost,
            "recent": latest,
            "agent_names": await self._name_agents.execute(principal, (run.agent_id for run in latest)),
            "unpriced": self._run_costs.unknown(latest),
        }

    async def _runs(self, principal: Principal, status: RunStatus | None) -> tuple[Run, ...]:
        page = await self._list_runs.execute(principal, RunFilter(status=status), PageRequest(limit=RECENT))
        return page.items

    async def all_servers(self, principal: Principal) -> list[ServerLine]:
        """All MCP servers, newest first, with their state."""
        found = await all_of(lambda page: self._list_servers.execute(principal=principal, page=page))
        return await self._lines(principal, found)

    async def servers(self, principal: Principal, cursor: str | None) -> Page[ServerLine]:
        """A page of the MCP servers, newest first, with their state."""
        page = await self._list_servers.execute(principal=principal, page=PageRequest(limit=RECENT, cursor=cursor))
        return Page(items=tuple(await self._lines(principal, page.items)), next_cursor=page.next_cursor)

    async def _lines(self, principal: Principal, servers: Iterable[McpServer]) -> list[ServerLine]:
        described = await self._describe_servers.execute(principal, servers)
        return [ServerLine(server=each.server, status=each.status, quarantined=each.quarantined) for each in described]

    async def _cost_today(self, principal: Principal) -> Decimal | None:
        """The cost of today; None if no used model has a known price."""
        today = self._clock.now().date()
        wanted = UsageFilter(since=today, until=today, by=frozenset({UsageKey.DAY}))
        page = await self._get_usage.execute(principal=principal, wanted=wanted)
        cost = sum((each.cost_usd for each in page.items), Decimal(0))
        return None if not cost and any(each.unpriced_calls for each in page.items) else cost


@get("/parts/charts")
async def show_charts(
    request: ConsoleRequest, pages: NamedDependency[Pages], overview_charts: NamedDependency[OverviewCharts]
) -> Response[str]:
    return pages.show(request, "parts/overview_charts.html", await overview_charts.of(request.principal))


@get("/")
async def show_overview(
    request: ConsoleRequest, pages: NamedDependency[Pages], overview: NamedDependency[Overview]
) -> Response[str]:
    return pages.show(request, "overview.html", await overview.of(request.principal))


@get("/parts/overview")
async def show_overview_part(
    request: ConsoleRequest, pages: NamedDependency[Pages], overview: NamedDependency[Overview]
) -> Response[str]:
    return pages.show(request, "parts/overview.html", await overview.of(request.principal))


def _count(found: tuple[object, ...]) -> str:
    return f"{len(found)}+" if len(found) == RECENT else str(len(found))


def _gauges(budgets: Mapping[str, object]) -> list[Gauge]:
    whole, agents = budgets["whole"], budgets["gauges"]
    return [cast(Gauge, whole), *cast("list[Gauge]", agents)]
