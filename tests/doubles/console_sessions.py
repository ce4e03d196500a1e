"""Sessions of the console in memory."""

from dataclasses import replace
from datetime import datetime

from application.identity.ports import SessionFilter
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.console_session import MAX_SESSIONS, ConsoleSession, ListedSession, SessionKind
from domain.ids import ApiKeyId, ConsoleSessionId, OrganizationId
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryConsoleSessionStore:
    """The `ConsoleSessionStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, session: ConsoleSession) -> None:
        """Store a session, and drop expired and surplus ones."""
        stored = self._state.console_sessions
        for each in list(stored.values()):
            if each.organization_id == session.organization_id and each.expires_at <= session.created_at:
                del stored[each.id]
        stored[session.id] = session
        theirs = [
            each
            for each in stored.values()
            if (each.organization_id, each.holder) == (session.organization_id, session.holder)
        ]
        for each in sorted(theirs, key=lambda each: (each.created_at, each.id))[:-MAX_SESSIONS]:
            del stored[each.id]

    async def get(self, organization_id: OrganizationId, session_id: ConsoleSessionId) -> ConsoleSession | None:
        """The session."""
        session = self._state.console_sessions.get(session_id)
        return session if session is not None and session.organization_id == organization_id else None

    async def saw(self, organization_id: OrganizationId, session_id: ConsoleSessionId, at: datetime) -> None:
        """Store a later time."""
        session = await self.get(organization_id, session_id)
        if session is not None and session.last_seen_at < at:
            self._state.console_sessions[session_id] = replace(session, last_seen_at=at)

    async def end(self, organization_id: OrganizationId, session_id: ConsoleSessionId, audit: AuditEvent) -> bool:
        """Drop the session."""
        if await self.get(organization_id, session_id) is None:
            return False
        del self._state.console_sessions[session_id]
        self._state.record(audit)
        return True

    async def page(
        self, organization_id: OrganizationId, wanted: SessionFilter, request: PageRequest
    ) -> Page[ListedSession]:
        """Of the console and of clients."""
        listed = [
            ListedSession(
                id=each.id,
                kind=SessionKind.CONSOLE,
                holder=each.holder,
                created_at=each.created_at,
                last_seen_at=each.last_seen_at,
                expires_at=each.expires_at,
                address=each.address,
                user_agent=each.user_agent,
                client_name=None,
            )
            for each in self._state.console_sessions.values()
            if each.organization_id == organization_id
        ]
        listed += [
            ListedSession(
                id=each.session.id,
                kind=SessionKind.CLIENT,
                holder=each.session.created_by,
                created_at=each.session.created_at,
                last_seen_at=None,
                expires_at=each.session.expires_at,
                address=None,
                user_agent=None,
                client_name=each.session.client_name,
            )
            for each in self._state.gateway_sessions.values()
            if each.session.organization_id == organization_id
            and each.session.client_id is not None
            and each.session.revoked_at is None
        ]
        listed += [
            ListedSession(
                id=each.id,
                kind=SessionKind.IMPERSONATION,
                holder=ApiKeyId(each.user_id),
                created_at=each.created_at,
                last_seen_at=None,
                expires_at=each.expires_at,
                address=None,
                user_agent=None,
                client_name=None,
                actor=each.actor,
                reason=each.reason,
            )
            for each in self._state.impersonations.values()
            if each.organization_id == organization_id and each.ended_at is None
        ]
        listed = [each for each in listed if wanted.kind in (None, each.kind)]
        shown = (each for each in listed if each.expires_at > wanted.at and wanted.holder in (None, each.holder))
        return newest_first(shown, lambda each: by_time(each.created_at, each.id), request)
