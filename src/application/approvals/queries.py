"""Queries of approvals."""

from collections.abc import Sequence

from application.approvals.deciders import Deciders
from application.approvals.decision_rules import role_lacking
from application.approvals.ports import ApprovalFilter, ApprovalStore
from application.mcp.ports import McpServerStore
from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.refusals import account_not_yours
from domain.errors import ServiceError, existing
from domain.identity.api_key import Principal, person_of
from domain.identity.role import Role
from domain.ids import ApprovalId
from domain.mcp.server import Credentials


class ListApprovals:
    """Newest first. Requires the role viewer."""

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def execute(self, principal: Principal, wanted: ApprovalFilter, page: PageRequest) -> Page[Approval]:
        principal.require(Role.VIEWER)
        return await self._approvals.page(principal.organization_id, wanted, page.seen_by(principal))


class WhyNotApprovable:
    """Which approvals the caller may not approve, with the reason: role, approvers and four eyes,
    as the decision checks them. Only pending approvals have one."""

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


class WhyNotEditable:
    """Which approvals have arguments that the caller may not change, with the reason: the call uses
    the account of another person, as the decision checks it."""

    def __init__(self, *, servers: McpServerStore) -> None:
        self._servers = servers

    async def execute(self, principal: Principal, approvals: Sequence[Approval]) -> dict[ApprovalId, ServiceError]:
        of_others = [each for each in approvals if person_of(each.requested_by) != principal.person_id]
        ids = {each.server_id for each in of_others if each.server_id is not None}
        servers = [await self._servers.get(principal.organization_id, server_id) for server_id in ids]
        personal = {
            server.id for server in servers if server is not None and server.config.credentials is Credentials.PERSON
        }
        return {each.id: account_not_yours() for each in of_others if each.server_id in personal}


class GetApproval:
    """One approval. Requires the role viewer."""

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def execute(self, principal: Principal, approval_id: ApprovalId) -> Approval:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        found = await self._approvals.get(principal.organization_id, approval_id, teams=principal.visible_teams)
        return existing(found, "approval", approval_id)
