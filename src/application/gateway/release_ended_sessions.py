"""ReleaseEndedSessions: what this process keeps open for sessions that are over, however they ended."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from application.gateway.gateway_access import GatewayAccess
from application.gateway.ports import GatewaySessionStore
from application.mcp.ports import ConnectionScope, McpConnections
from application.system.ports import Clock
from domain.gateway.session import GatewaySession

logger = logging.getLogger(__name__)

EVERY_S = 30.0


class ReleaseEndedSessions:
    """Rules: connections of a session's own close when it has expired, or was ended by another process; those that a session
    has from its run end with the run."""

    def __init__(
        self,
        *,
        access: GatewayAccess,
        sessions: GatewaySessionStore,
        connections: McpConnections,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._access = access
        self._sessions = sessions
        self._connections = connections
        self._clock = clock
        self._sleep = sleep

    async def execute(self) -> int:
        """Release them; how many sessions have ended since."""
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

    async def keep(self) -> None:
        """Do so every half a minute, until cancelled."""
        while True:
            await self._sleep(EVERY_S)
            try:
                await self.execute()
            except Exception:
                logger.exception("ended gateway sessions could not be released; it is tried again")

    async def _is_over(self, session: GatewaySession) -> bool:
        now = self._clock.now()
        if not session.is_open(now):
            return True
        if self._access.knows(session.id):
            return False
        stored = await self._sessions.get(session.organization_id, session.id)
        return stored is None or not stored.is_open(now)
