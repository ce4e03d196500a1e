"""Lists approvals of the organization."""

from dataclasses import dataclass

from application.approvals.ports import ApprovalFilter, ApprovalStore
from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ListApprovalsCommand:
    """A page of the approvals that match."""

    principal: Principal
    wanted: ApprovalFilter
    page: PageRequest


class ListApprovals:
    """Rules: needs the role viewer; newest first."""

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def execute(self, command: ListApprovalsCommand) -> Page[Approval]:
        """The page."""
        command.principal.require(Role.VIEWER)
        return await self._approvals.page(command.principal.organization_id, command.wanted, command.page)
