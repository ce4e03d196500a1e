"""Checks whether a caller's key, or user, is still valid during long streams and waits."""

from datetime import datetime

from application.identity.caller_teams import CallerTeams
from application.identity.impersonations import Impersonations
from application.identity.ports import ConsoleSessionStore, IdentityStore, UserAccess
from application.identity.token_cache import TokenCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import OrganizationId, UserId
from domain.teams import Teams


def access_topic(organization_id: OrganizationId | None) -> str:
    """Signals that callers of the organization, or of any, may have other access than before."""
    return f"access:{organization_id or ''}"


def access_topics(principal: Principal) -> tuple[str, str]:
    """What wakes who watches for this caller, to ask `KeyValidity` again."""
    return access_topic(principal.organization_id), access_topic(None)


class KeyValidity:
    """Checks the token cache first, then the stored key. A user is read from storage. In the
    console, the session must not have ended either, and an impersonation must be valid."""

    def __init__(
        self,
        *,
        identities: IdentityStore,
        user_access: UserAccess,
        console_sessions: ConsoleSessionStore,
        impersonations: Impersonations,
        cache: TokenCache,
        caller_teams: CallerTeams,
        clock: Clock,
    ) -> None:
        self._identities = identities
        self._users = user_access
        self._sessions = console_sessions
        self._as_others = impersonations
        self._cache = cache
        self._teams = caller_teams
        self._clock = clock

    async def require(self, principal: Principal) -> Teams:
        """The teams that the caller sees now, with the role that they have now. Who acts as another
        user sees what they saw. Raises UNAUTHENTICATED `token_invalid` if the key is revoked or
        expired, or the user not admitted."""
        expires_at: datetime | None
        user, key = None, None
        known = self._cache.of_key(principal.key_id)
        if principal.impersonation_id is not None:
            await self._as_others.require(principal.organization_id, principal.impersonation_id)
            expires_at, revoked = principal.user_until, False
        elif principal.user_until is not None:
            user = await self._users.admitted(principal.organization_id, UserId(principal.key_id))
            expires_at, revoked = principal.user_until, user is None
        elif known is not None:
            expires_at, revoked = known.expires_at, False
        else:
            key = await self._identities.key(principal.organization_id, principal.key_id)
            expires_at, revoked = (None, True) if key is None else (key.expires_at, key.revoked_at is not None)
        if (session_id := principal.session_id) is not None and not revoked:
            revoked = await self._sessions.get(principal.organization_id, session_id) is None
        if revoked or (expires_at is not None and expires_at <= self._clock.now()):
            detail = "The API key or token has expired or was revoked."
            raise ServiceError("token_invalid", ErrorKind.UNAUTHENTICATED, detail)
        if user is not None:
            return await self._teams.of_user(user)
        if key is not None:
            return await self._teams.of_key(key)
        return (principal if known is None else known.principal).visible_teams
