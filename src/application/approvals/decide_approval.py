"""Decides one approval: of a run's call, the same as resuming the run with that decision; of a gateway session's, for its client."""

from dataclasses import dataclass

from application.approvals.check_decisions import CallDecision
from application.approvals.ports import ApprovalStore
from application.approvals.refusals import refuse_unless_pending
from application.gateway.decide_gateway_approval import DecideGatewayApproval
from application.runs.resume_run import ResumeRun, ResumeRunCommand
from domain.approvals.approval import Approval
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApprovalId
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideApprovalCommand:
    """`arguments` take the place of the model's; the reason of a denial is told to the model."""

    principal: Principal
    approval_id: ApprovalId
    approve: bool
    arguments: JsonObject | None = None
    reason: str | None = None


class DecideApproval:
    """Rules: needs the role operator; everything else is `ResumeRun`'s, or `DecideGatewayApproval`'s."""

    def __init__(self, *, approvals: ApprovalStore, resume_run: ResumeRun, of_session: DecideGatewayApproval) -> None:
        self._approvals = approvals
        self._resume_run = resume_run
        self._of_session = of_session

    async def execute(self, command: DecideApprovalCommand) -> Approval:
        """The approval after it. Raises NOT_FOUND `approval_not_found`, and what `CheckDecisions` raises."""
        command.principal.require(Role.OPERATOR)
        organization_id = command.principal.organization_id
        approval = await self._approvals.get(organization_id, command.approval_id)
        if approval is None:
            raise not_found("approval", command.approval_id)
        refuse_unless_pending(approval)
        if approval.run_id is None:
            await self._of_session.execute(
                command.principal,
                approval,
                approve=command.approve,
                arguments=command.arguments,
                reason=command.reason,
            )
        else:
            decision = CallDecision(
                tool_call_id=approval.tool_call_id,
                approve=command.approve,
                arguments=command.arguments,
                reason=command.reason,
                approval_id=approval.id,
            )
            await self._resume_run.execute(
                ResumeRunCommand(principal=command.principal, run_id=approval.run_id, approvals=(decision,))
            )
        decided = await self._approvals.get(organization_id, approval.id)
        if decided is None:
            raise not_found("approval", command.approval_id)
        return decided
