"""Tokens of a grant: a short access token, which is the session's, and the refresh token that
follows it."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from application.gateway.authorization.ports import ClientGrantStore, StoredGrant
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.identity.granted import granted_to
from application.identity.ports import RoleGrants, UserAccess
from application.system.ports import Clock, IdSource
from domain.errors import ErrorKind, ServiceError, invalid
from domain.gateway.client_grant import REFRESH_PREFIX, ClientGrant
from domain.gateway.session import SESSION_TOKEN_PREFIX, GatewaySession
from domain.identity.api_key import TOKEN_PREFIX, Principal, hash_token
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import UserId

ACCESS_LASTS = timedelta(hours=1)
GRANT_LASTS = timedelta(days=30)
"""From the last renewal."""
GRANT_LASTS_AT_MOST = timedelta(days=90)
"""From the consent, however often it is renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTokens:
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_in_s: int


class UsedBefore(Exception):
    """A code or a refresh token that was used before: someone else has it."""


class TokenIssuer:
    """Rules:
    - A new access token replaces the one before, also in caches.
    - With `external`, this service is no authorization server, and issues nothing.
    - A grant ends 90 days after the consent: a renewal asks neither the person nor their identity
      provider.
    - The person of the grant is active, may start runs, and its session has not ended.
    - A code or refresh token that is used a second time revokes its grant: both a client and a
      thief have it.
    """

    def __init__(
        self,
        *,
        grants: ClientGrantStore,
        user_access: UserAccess,
        custom_roles: RoleGrants,
        access: GatewayAccess,
        revoke_session: RevokeGatewaySession,
        clock: Clock,
        ids: IdSource,
        external: str | None = None,
    ) -> None:
        self._grants = grants
        self._users = user_access
        self._roles = custom_roles
        self._access = access
        self._revoke_session = revoke_session
        self._clock = clock
        self._ids = ids
        self._external = external

    async def issue(
        self,
        stored: StoredGrant,
        family: str | None,
        check: Callable[[ClientGrant, datetime], None],
    ) -> IssuedTokens:
        """New tokens; `check` decides over the locked grant, and raises what refuses them. `family`
        is the secret that refresh tokens of the grant have in common; None for the first. Raises
        INVALID `invalid_grant`."""
        if self._external is not None:
            raise refused_grant()
        session = stored[1]
        now = self._clock.now()
        ends = min(now + GRANT_LASTS, session.created_at + GRANT_LASTS_AT_MOST)
        token_ends = min(now + ACCESS_LASTS, ends)
        family, rest = family or self._secret(), self._secret()
        token = SESSION_TOKEN_PREFIX + self._secret()

        def decide(grant: ClientGrant, session: GatewaySession) -> StoredGrant:
            check(grant, now)
            if not session.is_open(now):
                raise refused_grant()
            renewed = grant.renewed(family_hash=hash_token(family), refresh_hash=hash_token(rest), at=now)
            return renewed, replace(
                session,
                token_hash=hash_token(token),
                token_expires_at=token_ends,
                expires_at=ends,
            )

        user = await self._users.admitted(session.organization_id, UserId(session.created_by))
        if user is None:
            raise refused_grant()
        if not user.principal(ends, await granted_to(user, self._roles)).may(Permission.RUNS_START):
            raise refused_grant()
        try:
            changed = await self._grants.change(session.organization_id, session.id, decide)
        except UsedBefore:
            await self.revoke(session, reason="used_twice")
            raise refused_grant() from None
        if not changed:
            raise refused_grant()
        self._access.forget(session.id)
        return IssuedTokens(
            access_token=token,
            refresh_token=f"{REFRESH_PREFIX}{family}.{rest}",
            expires_in_s=int((token_ends - now).total_seconds()),
        )

    async def revoke(self, session: GatewaySession, *, reason: str) -> None:
        """End a grant with its session, unless it has ended."""
        person = Principal(organization_id=session.organization_id, key_id=session.created_by, role=Role.RUNNER)
        command = RevokeGatewaySessionCommand(principal=person, session_id=session.id, reason=reason)
        try:
            await self._revoke_session.execute(command)
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise

    def _secret(self) -> str:
        return self._ids.new_token().removeprefix(TOKEN_PREFIX)


def split_refresh_token(token: str) -> tuple[str, str]:
    """The secret of the family, and the rest, which changes. Raises INVALID `invalid_grant`."""
    family, dot, rest = token.removeprefix(REFRESH_PREFIX).partition(".")
    if not token.startswith(REFRESH_PREFIX) or not dot or not family or not rest:
        raise refused_grant()
    return family, rest


def is_current(grant: ClientGrant, rest: str) -> bool:
    """Whether it is the rest of the grant's newest refresh token."""
    return hmac.compare_digest(hash_token(rest), grant.refresh_hash or "")


def require_client(grant: ClientGrant, client_id: str) -> None:
    """Raises INVALID `invalid_grant`."""
    if not hmac.compare_digest(hash_token(client_id), grant.client_hash):
        raise refused_grant()


def require_resource(grant: ClientGrant, resource: str | None) -> None:
    """Raises INVALID `invalid_target`."""
    if resource not in (None, grant.resource):
        raise invalid("invalid_target", "The grant is for another resource.")


def refused_grant() -> ServiceError:
    """The same for all reasons."""
    return invalid("invalid_grant", "The grant is unknown, expired, revoked, or of another client.")
