"""Decides one approval of a run's or a gateway session's call."""

from dataclasses import dataclass

from application.approvals.decision_rules import require_decider
from application.approvals.ports import ApprovalDecider, ApprovalStore
from domain.approvals.approval import Approval
from domain.approvals.decision import CallDecision
from domain.approvals.refusals import refuse_unless_pending
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.ids import ApprovalId
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideApprovalCommand:
    """`arguments` replace the model's; the model gets the reason of a denial."""

    principal: Principal
    approval_id: ApprovalId
    approve: bool
    arguments: JsonObject | None = None
    reason: str | None = None


class DecideApproval:
    """Rules:
    - Requires the role `operator`.
    - An approval that has ended is not decided again.
    - The rest is the decider's: `DecideRunApproval` for calls of runs, `DecideGatewayApproval` for
      gateway sessions.
    """

    def __init__(self, *, approvals: ApprovalStore, of_run: ApprovalDecider, of_session: ApprovalDecider) -> None:
        self._approvals = approvals
        self._of_run = of_run
        self._of_session = of_session

    async def execute(self, command: DecideApprovalCommand) -> Approval:
        """Raises NOT_FOUND `approval_not_found`, and what `ApprovalDecider` raises."""
        require_decider(command.principal)
        organization_id = command.principal.organization_id
        found = await self._approvals.get(organization_id, command.approval_id, teams=command.principal.visible_teams)
        approval = existing(found, "approval", command.approval_id)
        refuse_unless_pending(approval)
        decider = self._of_session if approval.run_id is None else self._of_run
        decision = CallDecision(
            tool_call_id=approval.tool_call_id,
            approval_id=approval.id,
            approve=command.approve,
            arguments=command.arguments,
            reason=command.reason,
        )
        await decider.execute(command.principal, approval, decision)
        return existing(await self._approvals.get(organization_id, approval.id), "approval", command.approval_id)
