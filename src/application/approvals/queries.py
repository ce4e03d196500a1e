"""Queries of approvals."""

from collections.abc import Sequence

from application.approvals.deciders import Deciders
from application.approvals.decision_rules import role_lacking
from application.approvals.ports import ApprovalFilter, ApprovalStore
from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval, ApprovalState
from domain.errors import ServiceError, existing
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApprovalId


class ListApprovals:
    """Newest first. Requires the role viewer."""

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def execute(self, principal: Principal, wanted: ApprovalFilter, page: PageRequest) -> Page[Approval]:
        principal.require(Role.VIEWER)
        return await self._approvals.page(principal.organization_id, wanted, page)


class WhyNotApprovable:
    """Which approvals the caller may not approve, with the reason: role, approvers and four eyes, as the decision checks
    them. Only pending approvals have one."""

    def __init__(self, *, deciders: Deciders) -> None:
        self._deciders = deciders

    async def execute(self, principal: Principal, approvals: Sequence[Approval]) -> dict[ApprovalId, ServiceError]:
        pending = [approval for approval in approvals if approval.state is ApprovalState.PENDING]
        lacking = role_lacking(principal)
        if lacking is not None:
            return {approval.id: lacking for approval in pending}
        deciders = await self._deciders.of(principal, pending)
        found = {approval.id: deciders[approval.id].refusal(approval) for approval in pending}
        return {approval_id: refusal for approval_id, refusal in found.items() if refusal is not None}


class GetApproval:
    """One approval. Requires the role viewer."""

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def execute(self, principal: Principal, approval_id: ApprovalId) -> Approval:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return existing(await self._approvals.get(principal.organization_id, approval_id), "approval", approval_id)
