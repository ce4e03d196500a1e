"""Gateway sessions and their calls in memory."""

from dataclasses import replace
from datetime import datetime

from application.system.pages import Page, PageRequest
from application.tools.failure_text import NEVER_MADE
from domain.approvals.approval import ApprovalState
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.gateway.call import GatewayCall, GatewayCallState, GatewaySettlement
from domain.gateway.session import GatewaySession
from domain.identity.custom_role import permissions_held
from domain.identity.permission import Permission
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, GatewaySessionId, OrganizationId, ToolCallId, UserId
from domain.teams import Teams, sees
from domain.threads.thread import Quarantine, Thread
from domain.tools.result import ToolOutcome, ToolResult
from tests.doubles.owners import seen, team_of
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.stored_gateway_session import StoredGatewaySession


class InMemoryGatewaySessionStore:
    """The `GatewaySessionStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, session: GatewaySession, audit: AuditEvent, *, thread: Thread | None) -> None:
        """Store a session with its thread."""
        if thread is not None:
            self._state.threads.setdefault(thread.id, StoredThread(thread=thread))
        self._state.gateway_sessions[session.id] = StoredGatewaySession(session=session)
        self._state.record(audit)

    async def keep(self, session: GatewaySession, *, thread: Thread) -> GatewaySession:
        """Store the session of an API key, unless it is there."""
        self._state.threads.setdefault(thread.id, StoredThread(thread=thread))
        stored = self._state.gateway_sessions.setdefault(session.id, StoredGatewaySession(session=session))
        return self._as_read(stored.session)

    async def get(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, *, teams: Teams = None
    ) -> GatewaySession | None:
        """The session, or None."""
        stored = self._state.gateway_sessions.get(session_id)
        if stored is None or stored.session.organization_id != organization_id:
            return None
        if not sees(teams, team_of(self._state, session_id)):
            return None
        return self._as_read(stored.session)

    async def by_token_hash(self, token_hash: str) -> GatewaySession | None:
        """The session of that token, or None."""
        sessions = (stored.session for stored in self._state.gateway_sessions.values())
        found = next((session for session in sessions if session.token_hash == token_hash), None)
        if found is None or not self._is_admitted(found):
            return None
        return self._as_read(found)

    async def page(
        self, organization_id: OrganizationId, request: PageRequest, *, created_by: ApiKeyId | None = None
    ) -> Page[GatewaySession]:
        """Sessions with a token, newest first."""
        found = [
            self._as_read(stored.session)
            for stored in self._state.gateway_sessions.values()
            if stored.session.organization_id == organization_id and stored.session.token_hash is not None
            if created_by in (None, stored.session.created_by)
        ]
        found = seen(self._state, request.teams, found, lambda session: session.id)
        return newest_first(found, lambda session: by_time(session.created_at, session.id), request)

    async def open_of_key(
        self, organization_id: OrganizationId, key_id: ApiKeyId, *, at: datetime, limit: int
    ) -> tuple[GatewaySessionId, ...]:
        """By the order in which they were stored."""
        found = [
            session.id
            for session in (self._as_read(stored.session) for stored in self._state.gateway_sessions.values())
            if (session.organization_id, session.created_by) == (organization_id, key_id)
            and session.token_hash is not None
            and session.is_open(at)
        ]
        return tuple(found[:limit])

    async def revoke(self, organization_id: OrganizationId, session_id: GatewaySessionId, audit: AuditEvent) -> bool:
        """End the session at `audit.at`."""
        session = await self.get(organization_id, session_id)
        if session is None or session.token_hash is None or not session.is_open(audit.at):
            return False
        self._state.gateway_sessions[session_id].session = replace(session, revoked_at=audit.at)
        _cancel_approvals(self._state, session_id, at=audit.at)
        self._state.record(audit)
        return True

    def _is_admitted(self, session: GatewaySession) -> bool:
        needed = Permission.GATEWAY_OPEN if session.client_id is None else Permission.RUNS_START
        user, key = self._state.users.get(UserId(session.created_by)), self._state.keys.get(session.created_by)
        holder = user or key
        if holder is None:
            return session.client_id is None
        roles = [role for role in self._state.custom_roles.values() if role.organization_id == holder.organization_id]
        if needed not in permissions_held(roles, holder.role, holder.custom_role):
            return False
        if user is None:
            return session.client_id is None
        return user.status is UserStatus.ACTIVE and user.provider_id in self._state.identity_providers

    def _as_read(self, session: GatewaySession) -> GatewaySession:
        """As revoked, if its run is over; with the limit of its key."""
        session = replace(session, team=team_of(self._state, session.thread_id))
        key = self._state.keys.get(session.created_by)
        if key is not None:
            session = replace(session, rate_limit=key.rate_limit or session.rate_limit, key_of=key.person_id)
        if session.wired is not None and session.revoked_at is None:
            of_workflow = self._state.workflow_runs[session.wired.workflow_run_id].run
            return replace(session, revoked_at=of_workflow.finished_at)
        stored = None if session.run_id is None else self._state.runs.get(session.run_id)
        if stored is None or session.revoked_at is not None:
            return session
        return replace(session, revoked_at=stored.run.finished_at)


class InMemoryGatewayLedger:
    """The `GatewayLedger` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def intend(self, call: GatewayCall, *, max_calls: int | None = None) -> bool:
        """Record a call before it is sent."""
        stored = self._session(call)
        if max_calls is not None and has_made(stored, call, max_calls):
            return False
        stored.calls[call.id] = (call, None)
        return True

    async def settle(self, settlement: GatewaySettlement, audit: AuditEvent) -> bool:
        """Store the outcome of a recorded call."""
        stored = self._session(settlement.call).calls.get(settlement.call.id)
        if stored is None or stored[1] is not None:
            return False
        self._put(settlement)
        self._state.record(audit)
        return True

    async def refuse(self, settlement: GatewaySettlement, audit: AuditEvent) -> None:
        """Store a call that is not made."""
        self._put(settlement)
        self._state.record(audit)

    async def halt(self, settlement: GatewaySettlement, audit: tuple[AuditEvent, ...], quarantine: Quarantine) -> None:
        """Store an outcome that ends the session."""
        stored = self._session(settlement.call)
        self._put(settlement)
        if stored.session.revoked_at is None:
            stored.session = replace(stored.session, revoked_at=settlement.at)
        thread = self._state.threads[stored.session.thread_id]
        if thread.thread.quarantine is None:
            thread.thread = replace(thread.thread, quarantine=quarantine)
        _cancel_approvals(self._state, stored.session.id, at=settlement.at)
        self._state.record(*audit)

    async def call_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayCall, GatewaySettlement | None] | None:
        """One call of the session."""
        stored = self._state.gateway_sessions.get(session_id)
        if stored is None or stored.session.organization_id != organization_id:
            return None
        return stored.calls.get(call_id)

    async def calls_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId
    ) -> tuple[tuple[GatewayCall, GatewaySettlement | None], ...]:
        """The session's calls, in order."""
        stored = self._state.gateway_sessions.get(session_id)
        if stored is None or stored.session.organization_id != organization_id:
            return ()
        return tuple(sorted(stored.calls.values(), key=lambda entry: (entry[0].recorded_at, entry[0].id)))

    def _session(self, call: GatewayCall) -> StoredGatewaySession:
        stored = self._state.gateway_sessions.get(call.session_id)
        if stored is None:
            raise not_found("gateway session", call.session_id)
        return stored

    def _put(self, settlement: GatewaySettlement) -> None:
        """As a database keeps it: of results only those that say what went wrong."""
        call = replace(settlement.call, state=GatewayCallState.SETTLED)
        text = settlement.result.text if settlement.result.is_error else ""
        result = ToolResult(outcome=settlement.result.outcome, text=text, error_code=settlement.result.error_code)
        self._session(call).calls[call.id] = (call, replace(settlement, call=call, result=result))


def has_made(stored: StoredGatewaySession, call: GatewayCall, max_calls: int) -> bool:
    """Whether the session has made as many calls of the tool as it may."""
    made = sum(
        entry.name == call.name and (settlement is None or _was_made(settlement.result))
        for entry, settlement in stored.calls.values()
    )
    return made >= max_calls


def _was_made(result: ToolResult) -> bool:
    return result.outcome is not ToolOutcome.BLOCKED and result.error_code not in NEVER_MADE


def _cancel_approvals(state: InMemoryState, session_id: GatewaySessionId, *, at: datetime) -> None:
    for approval in list(state.approvals.values()):
        if approval.gateway_session_id == session_id and approval.state is ApprovalState.PENDING:
            cancelled = replace(approval, state=ApprovalState.CANCELLED, decided_at=at, decided_by="system")
            state.approvals[approval.id] = cancelled
