"""Routes of approvals."""

from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter

from application.approvals.decide_approval import DecideApproval, DecideApprovalCommand
from application.approvals.ports import ApprovalFilter
from application.approvals.queries import GetApproval, ListApprovals, WhyNotApprovable
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from domain.approvals.approval import ApprovalState
from domain.ids import ApprovalId, RunId
from interfaces.http.approvals.schemas import DecisionBody
from interfaces.http.approvals.views import ApprovalPage, ApprovalView, approval_view
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import ApprovalPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Approvals", description="Decisions of people about tool calls.")


@get("/approvals", summary="List approvals", responses=documented())
async def list_approvals(
    *,
    request: ApiRequest,
    list_approvals: NamedDependency[ListApprovals],
    why_not_approvable: NamedDependency[WhyNotApprovable],
    in_state: Annotated[
        ApprovalState | None, QueryParameter(name="state", description="Only approvals in this state.")
    ] = None,
    run_id: Annotated[str | None, QueryParameter(description="Only approvals of this run.")] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> ApprovalPage:
    """Newest first. `state=pending` lists approvals that require a decision; `approvable` says
    which of them the caller may approve."""
    page = await list_approvals.execute(
        principal=request.principal,
        wanted=ApprovalFilter(state=in_state, run_id=None if run_id is None else RunId(run_id)),
        page=PageRequest(limit=limit, cursor=cursor),
    )
    why_not = await why_not_approvable.execute(request.principal, page.items)
    return page_view(page, lambda approval: approval_view(approval, why_not))


@get("/approvals/{approval_id:str}", summary="Read an approval", responses=documented(404))
async def get_approval(
    request: ApiRequest,
    approval_id: ApprovalPath,
    get_approval: NamedDependency[GetApproval],
    why_not_approvable: NamedDependency[WhyNotApprovable],
) -> ApprovalView:
    """The call with its arguments, and the decision, if there is one."""
    approval = await get_approval.execute(request.principal, ApprovalId(approval_id))
    return approval_view(approval, await why_not_approvable.execute(request.principal, [approval]))


@post(
    "/approvals/{approval_id:str}",
    summary="Decide an approval",
    status_code=200,
    responses=documented(403, 404, 409, 413),
)
async def decide_approval(
    request: ApiRequest,
    approval_id: ApprovalPath,
    data: JSONBody[DecisionBody],
    decide_approval: NamedDependency[DecideApproval],
) -> ApprovalView:
    """Requires the role operator, and the caller among the approvers where policy names them. Where
    policy requires several approvals, it stays pending until the last one. An approval is decided
    once, before it expires, and only for the agent version that requested it. To decide several
    calls at once, resume the run with `approvals`."""
    command = DecideApprovalCommand(
        principal=request.principal,
        approval_id=ApprovalId(approval_id),
        approve=data.approves,
        arguments=data.edited,
        reason=data.reason,
    )
    return approval_view(await decide_approval.execute(command))
