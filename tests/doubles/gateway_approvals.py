"""Gateway calls that wait for an approval, and calls that nobody settles, in memory."""

from dataclasses import replace
from datetime import datetime

from application.gateway.ports import AskedCall
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.gateway.call import GatewayCall, GatewayCallState
from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId, GatewaySessionId, OrganizationId
from tests.doubles.gateway import has_made
from tests.doubles.state import InMemoryState
from tests.doubles.stored_gateway_session import StoredGatewaySession


class InMemoryGatewayApprovals:
    """The ports `GatewayApprovals` and `LostCalls`, over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def ask(
        self,
        call: GatewayCall,
        approval: Approval,
        *,
        instead_of: Approval | None = None,
        max_calls: int | None = None,
    ) -> bool:
        """Store a call that awaits its approval, or the new approval of a stored one."""
        stored = self._session(call)
        if instead_of is not None:
            waiting = self._waiting(stored, call, instead_of.id)
            if waiting is None:
                return False
            call = replace(waiting, approval_id=approval.id)
            self._end(instead_of.id, ApprovalState.STALE, at=approval.created_at)
        elif max_calls is not None and has_made(stored, call, max_calls):
            return False
        stored.calls[call.id] = (call, None)
        self._state.approvals[approval.id] = approval
        return True

    async def asked(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, name: str
    ) -> tuple[AskedCall, ...]:
        """Calls that await an approval, or have one that was not used."""
        stored = self._state.gateway_sessions.get(session_id)
        if stored is None or stored.session.organization_id != organization_id:
            return ()
        waiting = [
            AskedCall(call=call, approval=self._state.approvals[call.approval_id])
            for call, settlement in stored.calls.values()
            if call.name == name and settlement is None and call.state is GatewayCallState.AWAITING_APPROVAL
            if call.approval_id is not None
        ]
        return tuple(sorted(waiting, key=lambda asked: (asked.call.recorded_at, asked.call.id)))

    async def begin(self, asked: AskedCall, call: GatewayCall) -> bool:
        """Record the asked call as about to be sent."""
        stored = self._session(asked.call)
        waiting = self._waiting(stored, asked.call, asked.approval.id)
        if waiting is None:
            return False
        stored.calls[waiting.id] = (
            replace(
                waiting,
                state=GatewayCallState.RECORDED,
                params=call.params,
                recorded_at=call.recorded_at,
                due_at=call.due_at,
            ),
            None,
        )
        self._end(asked.approval.id, ApprovalState.STALE, at=call.recorded_at)
        return True

    async def end(self, approval: Approval, outcome: ApprovalOutcome, audit: tuple[AuditEvent, ...]) -> bool:
        """End a pending approval."""
        pending = self._state.approvals.get(approval.id)
        if pending is None or pending.state is not ApprovalState.PENDING:
            return False
        self._state.approvals[approval.id] = replace(
            pending,
            state=outcome.state,
            decided_at=outcome.at,
            decided_by=outcome.by,
            reason=outcome.reason,
            edited_arguments=outcome.edited_arguments,
        )
        self._state.record(*audit)
        return True

    async def lost(self, *, before: datetime | None, limit: int) -> tuple[tuple[GatewaySession, GatewayCall], ...]:
        """Recorded calls that are due."""
        found = [
            (stored.session, call)
            for stored in self._state.gateway_sessions.values()
            for call, settlement in stored.calls.values()
            if settlement is None and call.state is GatewayCallState.RECORDED
            if before is None or call.due_at is None or call.due_at < before
        ]
        return tuple(found[:limit])

    def _session(self, call: GatewayCall) -> StoredGatewaySession:
        stored = self._state.gateway_sessions.get(call.session_id)
        if stored is None:
            raise not_found("gateway session", call.session_id)
        return stored

    def _waiting(self, stored: StoredGatewaySession, call: GatewayCall, approval_id: ApprovalId) -> GatewayCall | None:
        known = stored.calls.get(call.id)
        if known is None or known[1] is not None or known[0].state is not GatewayCallState.AWAITING_APPROVAL:
            return None
        return known[0] if known[0].approval_id == approval_id else None

    def _end(self, approval_id: ApprovalId, state: ApprovalState, *, at: datetime) -> None:
        pending = self._state.approvals[approval_id]
        if pending.state is ApprovalState.PENDING:
            ended = replace(pending, state=state, decided_at=at, decided_by="system")
            self._state.approvals[approval_id] = ended
