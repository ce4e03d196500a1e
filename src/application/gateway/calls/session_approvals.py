"""New approvals of gateway sessions' calls: the values, without storing them."""

from datetime import datetime, timedelta

from domain.approvals.approval import Approval, approval_digest
from domain.approvals.decision import approval_cause
from domain.gateway.call import GatewayCall
from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId
from domain.mcp.server_pin import ServerPin
from domain.policy.decision import Decision


def new_approval(
    approval_id: ApprovalId,
    session: GatewaySession,
    call: GatewayCall,
    decision: Decision,
    *,
    agent_version: int,
    server: ServerPin | None,
    at: datetime,
) -> Approval:
    """The approval that policy requires for the call. It expires with the session at the latest."""
    terms = decision.policy.approval
    return Approval(
        id=approval_id,
        organization_id=session.organization_id,
        gateway_session_id=session.id,
        tool_call_id=call.id,
        tool=call.name,
        server_id=call.server_id,
        server=server,
        arguments=call.params,
        digest=approval_digest(call.name, call.params, agent_version, server),
        agent_id=session.agent_id,
        agent_version=agent_version,
        requested_by=session.created_by,
        allow_self_approval=terms.allow_self,
        approvers=terms.approvers or None,
        approvals_needed=terms.needed if terms.needed > 1 else None,
        cause=approval_cause(decision.source),
        created_at=at,
        expires_at=min(at + timedelta(seconds=terms.ttl_s), session.expires_at),
    )
