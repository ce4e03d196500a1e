"""EndSession: sign a browser out of the console, or take a client's access to the gateway back."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.identity.ports import ConsoleSessionStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ConsoleSessionId, GatewaySessionId

_OF_GATEWAY = "gws_"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSessionCommand:
    principal: Principal
    session_id: str


class EndSession:
    """Rules:
    - Callers end their own sessions, admins those of their organization.
    - The session is refused at once, in every process and for copies of its cookie. Its streams end.
    - Audited as `session.ended`. A client's session is revoked as `RevokeGatewaySession` says.

    Raises: ServiceError session_not_found, gateway_session_not_found, role_insufficient.
    """

    def __init__(
        self,
        *,
        console_sessions: ConsoleSessionStore,
        revoke_session: RevokeGatewaySession,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._sessions = console_sessions
        self._revoke_session = revoke_session
        self._clock = clock
        self._ids = ids

    async def execute(self, command: EndSessionCommand) -> None:
        principal = command.principal
        if command.session_id.startswith(_OF_GATEWAY):
            await self._revoke_session.execute(
                RevokeGatewaySessionCommand(principal=principal, session_id=GatewaySessionId(command.session_id))
            )
            return
        session_id = ConsoleSessionId(command.session_id)
        session = await self._sessions.get(principal.organization_id, session_id)
        if session is None or session.holder != principal.key_id:
            principal.require(Role.ADMIN)
        audit = audit_entry(
            principal,
            AuditAction.SESSION_ENDED,
            session_id,
            ids=self._ids,
            at=self._clock.now(),
            details={} if session is None else {"holder": session.holder},
        )
        if session is None or not await self._sessions.end(principal.organization_id, session_id, audit):
            raise not_found("session", session_id)
