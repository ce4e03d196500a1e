"""EndSession: sign a browser out of the console, or take a client's access to the gateway back."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.identity.ports import ConsoleSessionStore, ImpersonationStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import existing, not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, ConsoleSessionId, GatewaySessionId, ImpersonationId

_OF_GATEWAY = "gws_"
_OF_IMPERSONATION = "imp_"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSessionCommand:
    principal: Principal
    session_id: str


class EndSession:
    """Rules:
    - Callers end their own sessions, admins those of their organization.
    - The session is refused at once, in every process and for copies of its cookie. Its streams
      end.
    - An impersonation is ended by the user, by who acts, or by an admin; audited as
      `impersonation.ended`.
    - Audited as `session.ended`. A client's session is revoked as `RevokeGatewaySession` says.

    Raises: ServiceError session_not_found, gateway_session_not_found, impersonation_not_found,
    role_insufficient.
    """

    def __init__(
        self,
        *,
        console_sessions: ConsoleSessionStore,
        impersonations: ImpersonationStore,
        revoke_session: RevokeGatewaySession,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._sessions = console_sessions
        self._impersonations = impersonations
        self._revoke_session = revoke_session
        self._clock = clock
        self._ids = ids

    async def execute(self, command: EndSessionCommand) -> None:
        principal = command.principal
        if command.session_id.startswith(_OF_GATEWAY):
            await self._revoke_session.execute(
                RevokeGatewaySessionCommand(principal=principal, session_id=GatewaySessionId(command.session_id))
            )
        elif command.session_id.startswith(_OF_IMPERSONATION):
            await self._end_impersonation(principal, ImpersonationId(command.session_id))
        else:
            await self._end(principal, ConsoleSessionId(command.session_id))

    async def _end(self, principal: Principal, session_id: ConsoleSessionId) -> None:
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

    async def _end_impersonation(self, principal: Principal, impersonation_id: ImpersonationId) -> None:
        found = await self._impersonations.get(principal.organization_id, impersonation_id)
        of_caller = found is not None and principal.key_id in (found.actor, found.acting, ApiKeyId(found.user_id))
        if not of_caller:
            principal.require(Role.ADMIN)
        found = existing(found, "impersonation", impersonation_id)
        audit = audit_entry(
            principal,
            AuditAction.IMPERSONATION_ENDED,
            impersonation_id,
            ids=self._ids,
            at=self._clock.now(),
            details={"of": found.actor, "as": found.user_id},
        )
        if not await self._impersonations.end(principal.organization_id, impersonation_id, audit):
            raise not_found("impersonation", impersonation_id)
