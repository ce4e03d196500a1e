"""Two runs compared, side by side."""

import asyncio

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from application.agents.name_agents import NameAgents
from application.runs.ports import RunFilter
from application.runs.queries import GetRun, GetRunEvents, ListRuns
from application.system.pages import PageRequest
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import RunId
from domain.runs.events import RunEvent
from domain.runs.run import Run
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.run_comparison import MAX_STEPS, compared, figures, given
from interfaces.console.run_costs import RunCosts

PAGE = 2_000
MAX_EVENTS = 10_000
"""Of each run; later steps are not compared."""
OFFERED = 30


class Comparison:
    """Data of the page."""

    def __init__(
        self,
        *,
        get_run: GetRun,
        get_run_events: GetRunEvents,
        list_runs: ListRuns,
        name_agents: NameAgents,
        run_costs: RunCosts,
    ) -> None:
        self._get_run = get_run
        self._events = get_run_events
        self._list_runs = list_runs
        self._name_agents = name_agents
        self._run_costs = run_costs

    async def of(self, principal: Principal, run_ids: list[str], *, oldest_first: bool) -> dict[str, object]:
        """Raises NOT_FOUND, and INVALID without a run."""
        if not run_ids:
            raise invalid("runs_missing", "Choose two runs.", Violation(path="run", message="must name two runs"))
        runs = [await self._get_run.execute(principal, RunId(each)) for each in run_ids[:2]]
        if oldest_first:
            runs.sort(key=lambda run: run.created_at)
        context: dict[str, object] = {
            "one": runs[0],
            "other": None,
            "left_out": max(0, len(run_ids) - 2),
            "agent_names": await self._name_agents.execute(principal, (run.agent_id for run in runs)),
        }
        if len(runs) == 1:
            return context | await self._offered(principal, runs[0])
        return context | await self._compared(principal, runs[0], runs[1])

    async def _compared(self, principal: Principal, one: Run, other: Run) -> dict[str, object]:
        names = await self._name_agents.execute(principal, (one.agent_id, other.agent_id))
        events = [await self._all_events(principal, run) for run in (one, other)]
        return {
            "other": other,
            "given": given(one, other, names),
            "figures": figures(one, other, self._run_costs.unknown((one, other))),
            "compared": await asyncio.to_thread(compared, one, other, *events),
            "most_steps": MAX_STEPS,
            "is_cut": any(run.last_seq > MAX_EVENTS for run in (one, other)),
        }

    async def _offered(self, principal: Principal, run: Run) -> dict[str, object]:
        """Other runs of the agent, newest first; the one that it retries comes first."""
        page = await self._list_runs.execute(
            principal, RunFilter(agent_id=run.agent_id), PageRequest(limit=OFFERED + 1)
        )
        others = [each for each in page.items if each.id != run.id][:OFFERED]
        return {
            "offered": sorted(others, key=lambda each: each.id != run.retry_of),
            "unpriced": self._run_costs.unknown(others),
        }

    async def _all_events(self, principal: Principal, run: Run) -> list[RunEvent]:
        found: list[RunEvent] = []
        after: int | None = 0
        while after is not None and len(found) < MAX_EVENTS:
            page = await self._events.execute(principal, run.id, after_seq=after, limit=PAGE)
            found += page.items
            after = None if page.next_cursor is None else int(page.next_cursor)
        return found


@get("/compare")
async def compare_runs(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    comparison: NamedDependency[Comparison],
    run: FromQuery[list[str] | None] = None,
    order: FromQuery[str] = "",
) -> Response[str]:
    """The first two runs named; with one, the runs to compare it with."""
    context = await comparison.of(request.principal, run or [], oldest_first=order == "oldest")
    return pages.show(request, "compare.html", context)
