"""The page of a run; its events are in run_events.py, the list is in run_list.py."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.agents.name_agents import NameAgents
from application.approvals.ports import ApprovalFilter
from application.approvals.queries import ListApprovals, WhyNotApprovable, WhyNotEditable
from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.queries import GetRun
from application.runs.retry_run import RetryRun, RetryRunCommand
from application.system.pages import PageRequest
from application.tracing.ports import TraceAddresses
from domain.approvals.approval import ApprovalState
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId
from interfaces.console.argument_forms import ArgumentForms
from interfaces.console.pages import Pages
from interfaces.console.questions import fields_of
from interfaces.console.requests import ConsoleRequest
from interfaces.console.run_costs import RunCosts
from interfaces.console.run_starters import RunStarters
from interfaces.console_paths import PATH

MAX_CALLS = 200
MAX_APPROVALS = 100
_TOOL_ACTIONS = "tool.*"


class RunPages:
    """Data of a run's page besides its events."""

    def __init__(
        self,
        *,
        get_run: GetRun,
        name_agents: NameAgents,
        run_costs: RunCosts,
        run_starters: RunStarters,
        list_approvals: ListApprovals,
        why_not_approvable: WhyNotApprovable,
        why_not_editable: WhyNotEditable,
        argument_forms: ArgumentForms,
        list_audit_events: ListAuditEvents,
        trace_addresses: TraceAddresses,
    ) -> None:
        self._get_run = get_run
        self._name_agents = name_agents
        self._run_costs = run_costs
        self._run_starters = run_starters
        self._list_approvals = list_approvals
        self._why_not = why_not_approvable
        self._why_fixed = why_not_editable
        self._argument_forms = argument_forms
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
        waiting = [each for each in approvals.items if each.state is ApprovalState.PENDING]
        decided = [each for each in approvals.items if each.state is not ApprovalState.PENDING]
        return {
            "run": run,
            "agent_names": await self._name_agents.execute(principal, (run.agent_id,)),
            "unpriced": self._run_costs.unknown((run,)),
            "starter": (await self._run_starters.of(principal, (run,)))[run.id],
            "trace": self._trace_addresses.of(run),
            "approvals": waiting,
            "why_not": await self._why_not.execute(principal, waiting),
            "why_fixed": await self._why_fixed.execute(principal, waiting),
            "argument_forms": await self._argument_forms.of(principal, waiting),
            "decided": decided,
            "people": await self._run_starters.names(principal, (each.decided_by for each in decided)),
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
            "may_decide": principal.may(Permission.APPROVALS_DECIDE),
            "may_run": principal.may(Permission.RUNS_START),
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


@post("/runs/{run_id:str}/retry", status_code=200)
async def retry_run(
    request: ConsoleRequest, run_id: FromPath[str], retry_run: NamedDependency[RetryRun]
) -> Response[str]:
    """Start a run that continues the failed one, and show it, in the chat if it is asked for
    there."""
    started = await retry_run.execute(RetryRunCommand(principal=request.principal, run_id=RunId(run_id)))
    in_chat = f"{PATH}/chat/" in (request.htmx.current_url or "")
    target = f"{PATH}/chat/{started.run.thread_id}" if in_chat else f"{PATH}/runs/{started.run.id}"
    return Response("", headers={HTMXHeaders.REDIRECT.value: target})
