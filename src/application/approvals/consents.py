"""Consents: approvals of several people for one call."""

from datetime import datetime

from application.approvals.ports import ApprovalStore
from domain.approvals.approval import Approval, Consent
from domain.approvals.decision import CallDecision, consent_audit
from domain.approvals.refusals import refuse_unless_pending
from domain.audit.event import AuditEvent
from domain.identity.api_key import Principal


class Consents:
    """Rules:
    - An approval that one person gives is enough, unless policy requires more (`Approval.needed`).
      A denial is always enough.
    - Each consent is stored with the approval, and audited as `tool.approval_given`. It stays when
      its person leaves.
    - `refuse_decision` has checked who decides.
    """

    def __init__(self, *, approvals: ApprovalStore) -> None:
        self._approvals = approvals

    async def suffice(self, principal: Principal, approval: Approval, decision: CallDecision, *, at: datetime) -> bool:
        """Store the caller's consent, if several are needed; whether the decision is taken with it.
        Raises CONFLICT as `refuse_unless_pending`."""
        if not decision.approve or approval.needed == 1:
            return True
        consent = Consent(by=principal.key_id, person=principal.acts_for or principal.key_id, at=at)

        def decide(stored: Approval) -> tuple[Approval, AuditEvent] | None:
            refuse_unless_pending(stored)
            changed = stored.with_consent(consent)
            return None if changed == stored else (changed, consent_audit(changed, consent))

        return (await self._approvals.consent(approval.organization_id, approval.id, decide)).has_enough
