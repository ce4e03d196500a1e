"""ReleaseEndedSessions: releases this process's resources of ended sessions."""

from application.gateway.ports import GatewaySessionStore
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.ports import ConnectionScope, McpConnections
from application.system.ports import Clock
from domain.gateway.session import GatewaySession

EVERY_S = 30.0


class ReleaseEndedSessions:
    """Rules:
    - The session's own connections close after it expired or another process ended it.
    - Connections of a session's run end with the run.
    """

    def __init__(
        self,
        *,
        access: GatewayAccess,
        sessions: GatewaySessionStore,
        connections: McpConnections,
        clock: Clock,
    ) -> None:
        self._access = access
        self._sessions = sessions
        self._connections = connections
        self._clock = clock

    async def execute(self) -> int:
        """Release ended sessions and return their number."""
        count = 0
        for session in self._access.served():
            if await self._is_over(session):
                self._access.dropped(session.id)
                if session.run_id is None:
                    await self._connections.release(
                        ConnectionScope(organization_id=session.organization_id, gateway_session_id=session.id)
                    )
                count += 1
        return count

    async def _is_over(self, session: GatewaySession) -> bool:
        now = self._clock.now()
        if not session.is_open(now):
            return True
        if self._access.knows(session.id):
            return False
        stored = await self._sessions.get(session.organization_id, session.id)
        return stored is None or not stored.is_open(now)
