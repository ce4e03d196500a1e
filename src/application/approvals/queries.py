"""Queries of approvals."""

from application.approvals.ports import ApprovalFilter, ApprovalStore
from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval
from domain.errors import existing
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


class GetApproval:
    """One approval. Requires the role viewer."""

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def execute(self, principal: Principal, approval_id: ApprovalId) -> Approval:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return existing(await self._approvals.get(principal.organization_id, approval_id), "approval", approval_id)
