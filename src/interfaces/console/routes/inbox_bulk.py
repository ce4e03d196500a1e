"""Decisions about many items of the inbox at a time, one after the other; what is not possible is
said."""

from collections.abc import Awaitable, Callable, Iterable

from litestar import Response, post
from litestar.di import NamedDependency

from application.approvals.decide_approval import DecideApproval, DecideApprovalCommand
from application.approvals.queries import GetApproval
from application.mcp.approve_definition import ApproveDefinition, ApproveDefinitionCommand
from application.mcp.reject_definition import RejectDefinition, RejectDefinitionCommand
from application.workflows.resume_workflow_run import ResumeWorkflowRun, ResumeWorkflowRunCommand
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import ApprovalId
from interfaces.console.inbox import MOST, Inbox, InboxItem, InboxKind
from interfaces.console.inbox_answers import SETTLED
from interfaces.console.inbox_choices import ChosenTool, SharedAnswer
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest


class BulkDecisions:
    """Approves or denies calls and tools as they are shown, and answers questions of one node
    alike."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        get_approval: GetApproval,
        decide_approval: DecideApproval,
        approve_definition: ApproveDefinition,
        reject_definition: RejectDefinition,
        resume_workflow_run: ResumeWorkflowRun,
    ) -> None:
        self._inbox = inbox
        self._get_approval = get_approval
        self._decide_approval = decide_approval
        self._approve_definition = approve_definition
        self._reject_definition = reject_definition
        self._resume = resume_workflow_run

    async def decide(self, principal: Principal, chosen: Iterable[str], *, approve: bool) -> tuple[int, list[str]]:
        """How many were decided, and what was not. Questions among the chosen are left."""
        done, failures = 0, list[str]()
        for value in chosen:
            kind, _, rest = value.partition(":")
            if kind == InboxKind.APPROVAL:
                failure = await self._decide_call(principal, ApprovalId(rest), approve=approve)
            elif kind == InboxKind.TOOL:
                failure = await self._decide_tool(principal, ChosenTool.of(value), approve=approve)
            else:
                continue
            if failure is None:
                done += 1
            else:
                failures.append(failure)
        return done, failures

    async def answer(self, principal: Principal, chosen: Iterable[str], given: SharedAnswer) -> tuple[int, list[str]]:
        """The same answer to all chosen questions that offer it."""
        waiting = {item.key: item for item in await self._inbox.of(principal)}
        done, failures = 0, list[str]()
        for key in chosen:
            if not key.startswith(f"{InboxKind.NODE}:"):
                continue
            item = waiting.get(key)
            if item is None:
                failures.append(f"{key.rpartition(':')[2]}: it does not wait any more.")
            elif not given.fits(item):
                failures.append(f"{item.title}: it asks something else. Answer it by itself.")
            elif (failure := await self._answer(principal, item, given)) is None:
                done += 1
            else:
                failures.append(failure)
        return done, failures

    async def _answer(self, principal: Principal, item: InboxItem, given: SharedAnswer) -> str | None:
        assert item.workflow_run is not None
        node_id = given.group.partition(":")[2]
        command = ResumeWorkflowRunCommand(
            principal=principal, run_id=item.workflow_run.id, answers={node_id: given.answer}
        )
        return await _failure(item.title, lambda: self._resume.execute(command))

    async def _decide_call(self, principal: Principal, approval_id: ApprovalId, *, approve: bool) -> str | None:
        command = DecideApprovalCommand(principal=principal, approval_id=approval_id, approve=approve)
        try:
            await self._decide_approval.execute(command)
        except ServiceError as error:
            return f"{await self._tool_of(principal, approval_id)}: {error.detail}"
        return None

    async def _tool_of(self, principal: Principal, approval_id: ApprovalId) -> str:
        """The tool that is called; the id where that is not known."""
        try:
            return (await self._get_approval.execute(principal, approval_id)).tool
        except ServiceError:
            return approval_id

    async def _decide_tool(self, principal: Principal, chosen: ChosenTool, *, approve: bool) -> str | None:
        name = f"{chosen.tool} of {chosen.server}"
        if approve:
            approval = ApproveDefinitionCommand(
                principal=principal, server=chosen.server, tool=chosen.tool, digest=chosen.digest
            )
            return await _failure(name, lambda: self._approve_definition.execute(approval))
        rejection = RejectDefinitionCommand(
            principal=principal, server=chosen.server, tool=chosen.tool, digest=chosen.digest
        )
        return await _failure(name, lambda: self._reject_definition.execute(rejection))


async def _failure(name: str, act: Callable[[], Awaitable[object]]) -> str | None:
    try:
        await act()
    except ServiceError as error:
        return f"{name}: {error.detail}"
    return None


@post("/inbox/bulk", status_code=200)
async def decide_many(
    request: ConsoleRequest, pages: NamedDependency[Pages], bulk_decisions: NamedDependency[BulkDecisions]
) -> Response[str]:
    """Approve or deny the chosen calls and tools, or give the chosen questions the same answer."""
    data = await request.form()
    chosen = [str(each) for each in data.getall("item", [])][:MOST]
    decision = data.get("decision")
    if decision == "answer":
        given = SharedAnswer.of(str(data.get("answer", "")))
        done, failures = await bulk_decisions.answer(request.principal, chosen, given)
    else:
        approve = is_approved(decision)
        done, failures = await bulk_decisions.decide(request.principal, chosen, approve=approve)
    action = {"approve": "approved", "deny": "denied"}.get(str(decision), "answered")
    context = {"done": done, "action": action, "failures": failures}
    return pages.show(request, "parts/bulk.html", context, headers={"HX-Trigger": SETTLED})


def is_approved(decision: object) -> bool:
    if decision not in ("approve", "deny"):
        raise invalid("decision_invalid", "Approve or deny.", Violation(path="decision", message="approve or deny"))
    return decision == "approve"
