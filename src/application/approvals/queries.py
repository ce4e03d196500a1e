"""Queries of approvals."""

from application.approvals.ports import ApprovalFilter, ApprovalStore
from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval
from domain.identity.api_key import Principal
from domain.identity.role import Role


class ListApprovals:
    """Newest first. Requires the role viewer."""

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def execute(self, principal: Principal, wanted: ApprovalFilter, page: PageRequest) -> Page[Approval]:
        principal.require(Role.VIEWER)
        return await self._approvals.page(principal.organization_id, wanted, page)
