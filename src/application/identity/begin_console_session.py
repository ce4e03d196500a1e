"""BeginConsoleSession: a browser has signed in."""

from dataclasses import dataclass

from application.identity.ports import ConsoleSessionStore
from application.system.ports import Clock, IdSource
from domain.identity.console_session import SESSION_LASTS, ConsoleSession, shown_line
from domain.ids import ApiKeyId, ConsoleSessionId, IdentityProviderId, OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginConsoleSessionCommand:
    """The user or API key (`holder`) was authenticated just now. `address` and `user_agent` are the
    browser's."""

    organization_id: OrganizationId
    holder: ApiKeyId
    provider_id: IdentityProviderId | None = None
    address: str | None = None
    user_agent: str | None = None


class BeginConsoleSession:
    """Rules:
    - Each sign-in begins a new session, for twelve hours.
    - A user or API key has a bounded number of sessions: a new one ends the oldest.
    """

    def __init__(self, *, console_sessions: ConsoleSessionStore, clock: Clock, ids: IdSource) -> None:
        self._sessions = console_sessions
        self._clock = clock
        self._ids = ids

    async def execute(self, command: BeginConsoleSessionCommand) -> ConsoleSession:
        now = self._clock.now()
        session = ConsoleSession(
            id=ConsoleSessionId(self._ids.new("ses")),
            organization_id=command.organization_id,
            holder=command.holder,
            provider_id=command.provider_id,
            created_at=now,
            last_seen_at=now,
            expires_at=now + SESSION_LASTS,
            address=shown_line(command.address),
            user_agent=shown_line(command.user_agent),
        )
        await self._sessions.add(session)
        return session
