"""ContinueConsoleSession: a request of a browser that has signed in."""

from dataclasses import dataclass
from datetime import datetime

from application.identity.ports import ConsoleSessionStore
from application.system.lru import LruCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.console_session import SEEN_EVERY, ConsoleSession
from domain.ids import ConsoleSessionId, OrganizationId

_SEEN = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueConsoleSessionCommand:
    organization_id: OrganizationId
    session_id: ConsoleSessionId


class ContinueConsoleSession:
    """Rules:
    - An expired or ended session is refused, in every process as soon as its end is stored.
    - When it was seen is stored every five minutes at most.

    Raises: ServiceError signed_out (UNAUTHENTICATED).
    """

    def __init__(self, *, console_sessions: ConsoleSessionStore, clock: Clock) -> None:
        self._sessions = console_sessions
        self._clock = clock
        self._seen: LruCache[ConsoleSessionId, datetime] = LruCache(_SEEN)

    async def execute(self, command: ContinueConsoleSessionCommand) -> ConsoleSession:
        now = self._clock.now()
        session = await self._sessions.get(command.organization_id, command.session_id)
        if session is None or session.expires_at <= now:
            raise signed_out()
        # The session may come from memory, as it was when it was read.
        seen_at = max(session.last_seen_at, self._seen.get(session.id) or session.last_seen_at)
        if now - seen_at >= SEEN_EVERY:
            self._seen.put(session.id, now)
            await self._sessions.saw(session.organization_id, session.id, now)
        return session


def signed_out() -> ServiceError:
    return ServiceError("signed_out", ErrorKind.UNAUTHENTICATED, "Sign in with an API key.")
