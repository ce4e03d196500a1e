"""Approvals: pending ones, and decisions."""

import asyncio

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.agents.name_agents import NameAgents
from application.approvals.decide_approval import DecideApproval, DecideApprovalCommand
from application.approvals.ports import ApprovalFilter
from application.approvals.queries import GetApproval, ListApprovals, WhyNotApprovable, WhyNotEditable
from application.runs.queries import GetRun
from application.system.pages import PageRequest
from domain.approvals.approval import ApprovalState
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ApprovalId
from interfaces.console.argument_forms import ArgumentForms
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form

PAGE = 100
DECIDED = "approval-decided"
"""Event of the browser after a decision."""


class WaitingApprovals:
    """Pending approvals, each with what its run was asked."""

    def __init__(
        self,
        *,
        list_approvals: ListApprovals,
        why_not_approvable: WhyNotApprovable,
        why_not_editable: WhyNotEditable,
        name_agents: NameAgents,
        argument_forms: ArgumentForms,
        get_run: GetRun,
    ) -> None:
        self._list_approvals = list_approvals
        self._why_not = why_not_approvable
        self._why_fixed = why_not_editable
        self._name_agents = name_agents
        self._argument_forms = argument_forms
        self._get_run = get_run

    async def of(self, principal: Principal) -> dict[str, object]:
        """Oldest first: those that expire first."""
        page = await self._list_approvals.execute(
            principal=principal,
            wanted=ApprovalFilter(state=ApprovalState.PENDING, run_id=None),
            page=PageRequest(limit=PAGE),
        )
        run_ids = dict.fromkeys(each.run_id for each in page.items if each.run_id is not None)
        runs = await asyncio.gather(*(self._get_run.execute(principal, run_id) for run_id in run_ids))
        return {
            "approvals": page.items[::-1],
            "why_not": await self._why_not.execute(principal, page.items),
            "why_fixed": await self._why_fixed.execute(principal, page.items),
            "argument_forms": await self._argument_forms.of(principal, page.items),
            "runs_by_id": {run.id: run for run in runs},
            "agent_names": await self._name_agents.execute(principal, (each.agent_id for each in page.items)),
            "may_decide": principal.may(Permission.APPROVALS_DECIDE),
        }


@get("/approvals")
async def show_approvals(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    waiting_approvals: NamedDependency[WaitingApprovals],
) -> Response[str]:
    return pages.show(request, "approvals.html", await waiting_approvals.of(request.principal))


@get("/parts/approvals")
async def show_approvals_part(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    waiting_approvals: NamedDependency[WaitingApprovals],
) -> Response[str]:
    return pages.show(request, "parts/approvals.html", await waiting_approvals.of(request.principal))


@post("/approvals/{approval_id:str}", status_code=200)
async def decide(
    *,
    request: ConsoleRequest,
    approval_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    argument_forms: NamedDependency[ArgumentForms],
    get_approval: NamedDependency[GetApproval],
    decide_approval: NamedDependency[DecideApproval],
) -> Response[str]:
    """Approve, with edited arguments if any, or deny."""
    principal = request.principal
    decision = data.get("decision")
    if decision not in ("approve", "deny"):
        raise invalid("decision_invalid", "Approve or deny.", Violation(path="decision", message="approve or deny"))
    waiting = await get_approval.execute(principal, ApprovalId(approval_id))
    arguments = await argument_forms.entered(principal, waiting, data) if decision == "approve" else None
    approval = await decide_approval.execute(
        DecideApprovalCommand(
            principal=principal,
            approval_id=waiting.id,
            approve=decision == "approve",
            arguments=arguments,
            reason=data.get("reason") or None,
        )
    )
    headers = {HTMXHeaders.TRIGGER_EVENT.value: DECIDED}
    return pages.show(request, "parts/decided.html", {"approval": approval}, headers=headers)
