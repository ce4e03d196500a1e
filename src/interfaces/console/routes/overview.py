"""The overview: recent runs, approvals, failures, cost, servers."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from litestar import Response, get
from litestar.di import NamedDependency

from application.agents.name_agents import NameAgents
from application.approvals.ports import ApprovalFilter
from application.approvals.queries import ListApprovals
from application.mcp.ports import ServerStatus
from application.mcp.queries import GetMcpServerStatus, ListMcpServers
from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.system.pages import PageRequest
from application.system.ports import Clock
from application.usage.ports import UsageFilter
from application.usage.queries import GetUsage
from domain.approvals.approval import ApprovalState
from domain.identity.api_key import Principal
from domain.mcp.server import McpServer
from domain.runs.run import Run, RunStatus
from domain.usage.daily_usage import UsageKey
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.run_costs import RunCosts

RECENT = 100
LATEST = 10
_UNFINISHED = (RunStatus.QUEUED, RunStatus.IN_PROGRESS, RunStatus.REQUIRES_ACTION)
_BAD = frozenset({RunStatus.FAILED, RunStatus.HALTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLine:
    server: McpServer
    status: ServerStatus


class Overview:
    """Collects the data of the page, from the newest hundred of everything."""

    def __init__(
        self,
        *,
        list_runs: ListRuns,
        name_agents: NameAgents,
        run_costs: RunCosts,
        list_approvals: ListApprovals,
        list_mcp_servers: ListMcpServers,
        get_mcp_server_status: GetMcpServerStatus,
        get_usage: GetUsage,
        clock: Clock,
    ) -> None:
        self._list_runs = list_runs
        self._name_agents = name_agents
        self._run_costs = run_costs
        self._list_approvals = list_approvals
        self._list_servers = list_mcp_servers
        self._server_status = get_mcp_server_status
        self._get_usage = get_usage
        self._clock = clock

    async def of(self, principal: Principal) -> dict[str, object]:
        """The figures by their names in the template."""
        recent, unfinished, approvals, servers, cost = await asyncio.gather(
            self._runs(principal, None),
            asyncio.gather(*(self._runs(principal, status) for status in _UNFINISHED)),
            self._list_approvals.execute(
                principal=principal,
                wanted=ApprovalFilter(state=ApprovalState.PENDING, run_id=None),
                page=PageRequest(limit=RECENT),
            ),
            self.servers(principal),
            self._cost_today(principal),
        )
        ended = Counter(run.status for run in recent if run.status.is_terminal)
        total = sum(ended.values())
        latest = recent[:LATEST]
        return {
            "unfinished": [(status.value, _count(runs)) for status, runs in zip(_UNFINISHED, unfinished, strict=True)],
            "ended": sorted((status.value, count) for status, count in ended.items()),
            "error_rate": None if not total else sum(ended[status] for status in _BAD) / total,
            "ended_total": total,
            "approvals": _count(approvals.items),
            "servers": servers,
            "cost_today": cost,
            "recent": latest,
            "agent_names": await self._name_agents.execute(principal, (run.agent_id for run in latest)),
            "unpriced": self._run_costs.unknown(latest),
        }

    async def _runs(self, principal: Principal, status: RunStatus | None) -> tuple[Run, ...]:
        page = await self._list_runs.execute(principal, RunFilter(status=status), PageRequest(limit=RECENT))
        return page.items

    async def servers(self, principal: Principal) -> list[ServerLine]:
        """The MCP servers, newest first, with their state."""
        page = await self._list_servers.execute(principal=principal, page=PageRequest(limit=RECENT))

        async def line(server: McpServer) -> ServerLine:
            return ServerLine(
                server=server, status=await self._server_status.execute(principal=principal, server=server.id)
            )

        return list(await asyncio.gather(*map(line, page.items)))

    async def _cost_today(self, principal: Principal) -> Decimal | None:
        """The cost of today; None if no used model has a known price."""
        today = self._clock.now().date()
        wanted = UsageFilter(since=today, until=today, by=frozenset({UsageKey.DAY}))
        page = await self._get_usage.execute(principal=principal, wanted=wanted)
        cost = sum((each.cost_usd for each in page.items), Decimal(0))
        return None if not cost and any(each.unpriced_calls for each in page.items) else cost


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
