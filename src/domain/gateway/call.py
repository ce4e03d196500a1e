"""The ledger of gateway calls: recorded before they are sent, settled before they are answered; and
their audit entries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.audit.event import AuditEvent
from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId, AuditEventId, GatewaySessionId, McpServerId, OrganizationId, ToolCallId, id_beside
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.policy.decision import Decision
from domain.runs.audit_trail import OUTCOME_ACTIONS
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult


class GatewayCallState(StrEnum):
    """The state of a ledger entry.

    - `recorded`: intended, perhaps sent.
    - `awaiting_approval`: not sent until it is approved and its client asks again. The approval
      holds the decision.
    - `settled`: the outcome is known.
    """

    RECORDED = "recorded"
    AWAITING_APPROVAL = "awaiting_approval"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCall:
    """A ledger entry: `name` is the model-facing name of the tool, `params` are its arguments.

    After `due_at` no process waits for the outcome: the calling process has settled the call, or
    has ended. `from_app`: an app that the client renders made the call; it is in the audit entry
    only.
    """

    id: ToolCallId
    session_id: GatewaySessionId
    organization_id: OrganizationId
    name: str
    type: ToolType
    server_id: McpServerId | None
    params: JsonObject
    recorded_at: datetime
    due_at: datetime | None = None
    state: GatewayCallState = GatewayCallState.RECORDED
    approval_id: ApprovalId | None = None
    from_app: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettlement:
    """The outcome of a call. It is stored once."""

    call: GatewayCall
    result: ToolResult
    duration_ms: int
    at: datetime


def gateway_call_audit(
    session: GatewaySession,
    settlement: GatewaySettlement,
    *,
    decision: Decision | None,
    asked: Sequence[JsonValue] = (),
) -> AuditEvent:
    """The audit entry for a settled call; its actor is the key that created the session.

    `decision` is the policy decision, if policy was evaluated. `asked` lists what the server
    requested from the client and how each request ended, without its content.
    """
    call, result = settlement.call, settlement.result
    details: JsonObject = {"gateway_session_id": session.id}
    if call.from_app:
        details["origin"] = "app"
    if result.error_code is not None:
        details["error"] = result.error_code
    if decision is not None:
        details["decision"] = decision.as_json()
    if asked:
        details["asked"] = [*asked]
    return AuditEvent(
        # Ids of related entries sort together, so a database writes fewer pages.
        id=AuditEventId(id_beside("aud", call.id)),
        organization_id=session.organization_id,
        action=OUTCOME_ACTIONS[result.outcome],
        actor=session.created_by,
        resource=call.id,
        at=settlement.at,
        run_id=session.run_id,
        tool=call.name,
        server_id=call.server_id,
        duration_ms=settlement.duration_ms,
        arguments_digest=canonical_digest(call.params),
        details=details,
    )
