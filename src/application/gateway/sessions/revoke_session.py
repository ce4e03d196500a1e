"""RevokeGatewaySession: makes a token invalid at once."""

from dataclasses import dataclass

from application.approvals.ports import session_approvals_topic
from application.audit.entries import audit_entry
from application.gateway.ports import GatewaySessionStore, session_topic
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.ports import ConnectionScope, McpConnections
from application.system.ports import Clock, IdSource
from application.system.wakeups import Wakeups
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import GatewaySessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeGatewaySessionCommand:
    """`reason` is audited."""

    principal: Principal
    session_id: GatewaySessionId
    reason: str | None = None


class RevokeGatewaySession:
    """Rules:
    - Operators end sessions of their organization whose agents they see, and others their own.
      Audited `gateway_session.revoked`.
    - Calls that were sent continue. The session's own connections to servers close.
    """

    def __init__(
        self,
        *,
        sessions: GatewaySessionStore,
        access: GatewayAccess,
        connections: McpConnections,
        wakeups: Wakeups,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._sessions = sessions
        self._access = access
        self._connections = connections
        self._wakeups = wakeups
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RevokeGatewaySessionCommand) -> None:
        """Raises FORBIDDEN, NOT_FOUND `gateway_session_not_found`, also for an ended session."""
        principal = command.principal
        if not principal.may(Permission.GATEWAY_OPEN) or principal.visible_teams is not None:
            await self._require_seen(principal, command.session_id)
        audit = audit_entry(
            principal,
            AuditAction.GATEWAY_SESSION_REVOKED,
            command.session_id,
            ids=self._ids,
            at=self._clock.now(),
            details={} if command.reason is None else {"reason": command.reason},
        )
        if not await self._sessions.revoke(principal.organization_id, command.session_id, audit):
            raise not_found("gateway session", command.session_id)
        self._access.forget(command.session_id)
        self._wakeups.wake(session_topic(command.session_id), session_approvals_topic(command.session_id))
        await self._connections.release(
            ConnectionScope(organization_id=principal.organization_id, gateway_session_id=command.session_id)
        )

    async def _require_seen(self, principal: Principal, session_id: GatewaySessionId) -> None:
        session = await self._sessions.get(principal.organization_id, session_id)
        if session is not None and session.created_by == principal.key_id:
            return
        principal.require(Permission.GATEWAY_OPEN)
        seen = await self._sessions.get(principal.organization_id, session_id, teams=principal.visible_teams)
        if seen is None:
            raise not_found("gateway session", session_id)
