"""HaltGatewaySession: ends a session and its run after a canary token was found."""

import asyncio

from application.gateway.ports import GatewayLedger
from application.gateway.sessions.gateway_access import GatewayAccess
from application.runs.cancel_run import CancelRun, CancelRunCommand
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, conflict
from domain.gateway.call import GatewaySettlement, gateway_call_audit
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import AuditEventId, RunId, derived_id
from domain.policy.decision import Decision
from domain.threads.thread import Quarantine


class HaltGatewaySession:
    """Rules:
    - In one transaction, the call is settled, the session is revoked, and its thread is
      quarantined. Then its run is cancelled.
    - A client that leaves meanwhile does not stop this.
    """

    def __init__(self, *, ledger: GatewayLedger, access: GatewayAccess, cancel_run: CancelRun) -> None:
        self._ledger = ledger
        self._access = access
        self._cancel_run = cancel_run
        self._halting: set[asyncio.Task[None]] = set()

    async def execute(
        self, session: GatewaySession, settlement: GatewaySettlement, decision: Decision | None, canary_id: str
    ) -> ServiceError:
        """Halt the session. Returns CONFLICT `gateway_session_halted` for its client."""
        halting = asyncio.create_task(self._halt(session, settlement, decision, canary_id), name="gateway-halt")
        self._halting.add(halting)
        halting.add_done_callback(self._halting.discard)
        await asyncio.shield(halting)
        return conflict("gateway_session_halted", f"The session {session.id} was halted.")

    async def _halt(
        self, session: GatewaySession, settlement: GatewaySettlement, decision: Decision | None, canary_id: str
    ) -> None:
        call = settlement.call
        halted = AuditEvent(
            id=AuditEventId(derived_id("aud", call.id, "halted")),
            organization_id=session.organization_id,
            action=AuditAction.SESSION_HALTED,
            actor="system",
            resource=session.id,
            at=settlement.at,
            run_id=session.run_id,
            details={"reason": "canary", "canary_id": canary_id, "tool_call_id": call.id},
        )
        quarantine = Quarantine(run_id=session.run_id or RunId(session.id), canary_id=canary_id, at=settlement.at)
        audit = gateway_call_audit(session, settlement, decision=decision)
        await self._ledger.halt(settlement, (audit, halted), quarantine)
        self._access.forget(session.id)
        if session.run_id is not None:
            opener = Principal(
                organization_id=session.organization_id, key_id=session.created_by, role=Role.OPERATOR, teams=None
            )
            await self._cancel_run.execute(CancelRunCommand(principal=opener, run_id=session.run_id))
