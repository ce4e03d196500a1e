"""EndSessions: end the sessions of a user or an API key."""

from dataclasses import dataclass

from application.identity.ports import ConsoleSessionStore, SessionFilter
from application.revocation.end_session import EndSession, EndSessionCommand
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSessionsCommand:
    principal: Principal
    holder: ApiKeyId


class EndSessions:
    """Rules:
    - As `EndSession`, for each: browsers and clients. The session in which the caller asks stays.
    - A session that begins meanwhile may stay.

    Raises: ServiceError role_insufficient.
    """

    def __init__(self, *, console_sessions: ConsoleSessionStore, end_session: EndSession, clock: Clock) -> None:
        self._sessions = console_sessions
        self._end_session = end_session
        self._clock = clock

    async def execute(self, command: EndSessionsCommand) -> int:
        """How many ended."""
        principal = command.principal
        if command.holder != principal.key_id:
            principal.require(Role.ADMIN)
        wanted = SessionFilter(at=self._clock.now(), holder=command.holder)
        ended, cursor = 0, None
        while True:
            page = await self._sessions.page(
                principal.organization_id, wanted, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor)
            )
            for session in page.items:
                if session.id != principal.session_id:
                    ended += await self._end(principal, session.id)
            if page.next_cursor is None:
                return ended
            cursor = page.next_cursor

    async def _end(self, principal: Principal, session_id: str) -> bool:
        """False if the session has ended meanwhile."""
        try:
            await self._end_session.execute(EndSessionCommand(principal=principal, session_id=session_id))
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return False
        return True
