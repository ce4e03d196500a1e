"""Grants of OAuth clients in memory."""

from collections.abc import Callable
from dataclasses import replace

from application.gateway.authorization.ports import GrantChange, StoredGrant
from domain.audit.event import AuditEvent
from domain.gateway.client_grant import ClientGrant
from domain.gateway.session import GatewaySession
from domain.ids import GatewaySessionId, OrganizationId
from domain.threads.thread import Thread
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.stored_gateway_session import StoredGatewaySession


class InMemoryClientGrantStore:
    """The `ClientGrantStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, grant: ClientGrant, session: GatewaySession, audit: AuditEvent, *, thread: Thread) -> None:
        """Store a grant with its session."""
        self._state.threads.setdefault(thread.id, StoredThread(thread=thread))
        self._state.gateway_sessions[session.id] = StoredGatewaySession(session=session)
        self._state.client_grants[session.id] = grant
        self._state.record(audit)

    async def of_code(self, code_hash: str) -> StoredGrant | None:
        """By its code."""
        return self._found(lambda grant, _: grant.code_hash == code_hash)

    async def of_family(self, family_hash: str) -> StoredGrant | None:
        """By what its refresh tokens have in common."""
        return self._found(lambda grant, _: grant.family_hash == family_hash)

    async def of_token(self, token_hash: str) -> StoredGrant | None:
        """By its access token."""
        return self._found(lambda _, session: session.token_hash == token_hash)

    async def change(self, organization_id: OrganizationId, session_id: GatewaySessionId, decide: GrantChange) -> bool:
        """Store what `decide` says."""
        grant = self._state.client_grants.get(session_id)
        if grant is None or grant.organization_id != organization_id:
            return False
        stored = self._state.gateway_sessions[session_id]
        changed, session = decide(grant, stored.session)
        self._state.client_grants[session_id] = changed
        stored.session = replace(
            stored.session,
            token_hash=session.token_hash,
            token_expires_at=session.token_expires_at,
            expires_at=session.expires_at,
        )
        return True

    async def is_known(self, client_hash: str) -> bool:
        """Whether there is one of the client."""
        return any(grant.client_hash == client_hash for grant in self._state.client_grants.values())

    def _found(self, matches: Callable[[ClientGrant, GatewaySession], bool]) -> StoredGrant | None:
        all_of_them = (
            (grant, self._state.gateway_sessions[session_id].session)
            for session_id, grant in self._state.client_grants.items()
        )
        return next((stored for stored in all_of_them if matches(*stored)), None)
