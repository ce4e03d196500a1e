"""Runs: the list, and the page of one run; its events are in run_events.py."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter

from application.agents.name_agents import NameAgents
from application.agents.queries import ListAgents
from application.approvals.ports import ApprovalFilter
from application.approvals.queries import ListApprovals
from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.ports import RunFilter
from application.runs.queries import GetRun, ListRuns
from application.system.pages import PageRequest
from application.tracing.ports import TraceAddresses
from domain.approvals.approval import ApprovalState
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import AgentId, RunId
from domain.runs.run import RunStatus
from interfaces.console.pages import Pages
from interfaces.console.questions import fields_of
from interfaces.console.requests import ConsoleRequest
from interfaces.console.run_costs import RunCosts
from interfaces.console.whole_lists import all_of

PAGE = 50
MAX_CALLS = 200
MAX_APPROVALS = 100
_TOOL_ACTIONS = "tool.*"


@get("/runs")
async def show_runs(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_runs: NamedDependency[ListRuns],
    list_agents: NamedDependency[ListAgents],
    name_agents: NamedDependency[NameAgents],
    run_costs: NamedDependency[RunCosts],
    status: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Runs, newest first, optionally of one status or agent."""
    principal = request.principal
    wanted = RunFilter(
        status=RunStatus(status) if status in set(RunStatus) else None, agent_id=AgentId(agent) if agent else None
    )
    runs = await list_runs.execute(principal, wanted, PageRequest(limit=PAGE, cursor=cursor))
    agents = await all_of(lambda page: list_agents.execute(principal=principal, page=page))
    return pages.show(
        request,
        "runs.html",
        {
            "runs": runs.items,
            "agent_names": await name_agents.execute(principal, (run.agent_id for run in runs.items)),
            "unpriced": run_costs.unknown(runs.items),
            "next_cursor": runs.next_cursor,
            "agents": agents,
            "statuses": list(RunStatus),
            "chosen": {"status": status, "agent": agent},
        },
    )


class RunPages:
    """Data of a run's page besides its events."""

    def __init__(
        self,
        *,
        get_run: GetRun,
        name_agents: NameAgents,
        run_costs: RunCosts,
        list_approvals: ListApprovals,
        list_audit_events: ListAuditEvents,
        trace_addresses: TraceAddresses,
    ) -> None:
        self._get_run = get_run
        self._name_agents = name_agents
        self._run_costs = run_costs
        self._list_approvals = list_approvals
        self._list_audit = list_audit_events
        self._trace_addresses = trace_addresses

    async def of(self, principal: Principal, run_id: RunId) -> dict[str, object]:
        """The run, its pending actions and decisions, and its tool calls in the audit trail.
        Raises NOT_FOUND."""
        run = await self._get_run.execute(principal, run_id)
        approvals = await self._list_approvals.execute(
            principal=principal, wanted=ApprovalFilter(run_id=run_id), page=PageRequest(limit=MAX_APPROVALS)
        )
        calls = await self._list_audit.execute(
            principal=principal,
            wanted=AuditFilter(run_id=run_id, action=_TOOL_ACTIONS),
            page=PageRequest(limit=MAX_CALLS),
        )
        return {
            "run": run,
            "agent_names": await self._name_agents.execute(principal, (run.agent_id,)),
            "unpriced": self._run_costs.unknown((run,)),
            "trace": self._trace_addresses.of(run),
            "approvals": [each for each in approvals.items if each.state is ApprovalState.PENDING],
            "decided": [each for each in approvals.items if each.state is not ApprovalState.PENDING],
            "sent_before": {
                use.approval.approval_id
                for use in run.pending
                if use.approval is not None and use.approval.outcome_unknown
            },
            "displayed": [use for use in run.pending if use.approval is None and use.elicitation is None],
            "questions": [
                {"use": use, "asked": use.elicitation, "fields": fields_of(use.elicitation.schema or {})}
                for use in run.pending
                if use.elicitation is not None
            ],
            "calls": calls.items[::-1],
            "may_decide": principal.role.includes(Role.OPERATOR),
            "may_run": principal.role.includes(Role.RUNNER),
        }


@get("/runs/{run_id:str}")
async def show_run(
    request: ConsoleRequest, run_id: FromPath[str], pages: NamedDependency[Pages], run_pages: NamedDependency[RunPages]
) -> Response[str]:
    return pages.show(request, "run.html", await run_pages.of(request.principal, RunId(run_id)))


@get("/runs/{run_id:str}/state")
async def show_run_state(
    request: ConsoleRequest, run_id: FromPath[str], pages: NamedDependency[Pages], run_pages: NamedDependency[RunPages]
) -> Response[str]:
    """The current state and pending actions."""
    return pages.show(request, "parts/run_changes.html", await run_pages.of(request.principal, RunId(run_id)))


@post("/runs/{run_id:str}/cancel", status_code=200)
async def cancel_run(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    pages: NamedDependency[Pages],
    cancel_run: NamedDependency[CancelRun],
    run_pages: NamedDependency[RunPages],
) -> Response[str]:
    await cancel_run.execute(CancelRunCommand(principal=request.principal, run_id=RunId(run_id)))
    return pages.show(request, "parts/run_changes.html", await run_pages.of(request.principal, RunId(run_id)))
