"""Impersonations: what a token of one stands for now."""

from dataclasses import dataclass, replace

from application.identity.authenticate_person import invalid_token
from application.identity.granted import granted_to
from application.identity.key_limits import KeyLimits
from application.identity.ports import IdentityStore, ImpersonationStore, RoleGrants, UserAccess
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal, hash_token, person_of
from domain.identity.impersonation import Impersonation
from domain.identity.permission import Permission
from domain.identity.user import User
from domain.ids import ApiKeyId, ImpersonationId, OrganizationId, UserId
from domain.rate_limit import RateLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Actor:
    """What bounds who acts as others: for a user the stored role."""

    permissions: frozenset[Permission]
    rate_limit: RateLimit | None = None


class Impersonations:
    """Rules:
    - An impersonation is valid until it expires or is ended, while the user is admitted, and while
      its actor may begin it.
    - Who may act as another user: a platform key, and a user to whom an admin gave
      `may_impersonate`. No one acts as a user with a permission that they lack, or as themselves.
    - The caller has the permissions of the user, and the id that names both
      (`Impersonation.acting`): neither accounts and groups of the user, nor platform rights.
    - All is read at each request, so that every process refuses at once what has ended.
    - The service's rate limit applies to the actor, and a platform key's own one or the
      organization's for the user who acts.

    Raises: ServiceError token_invalid (UNAUTHENTICATED), rate_limited (LIMIT).
    """

    def __init__(
        self,
        *,
        impersonations: ImpersonationStore,
        identities: IdentityStore,
        user_access: UserAccess,
        custom_roles: RoleGrants,
        limits: KeyLimits,
        clock: Clock,
    ) -> None:
        self._impersonations = impersonations
        self._identities = identities
        self._users = user_access
        self._roles = custom_roles
        self._limits = limits
        self._clock = clock

    async def of_token(self, token: str) -> tuple[Principal, Impersonation]:
        """The caller with this token."""
        found = await self._impersonations.by_hash(hash_token(token))
        principal, actor = await self._principal(found)
        assert found is not None  # a principal has one
        if (user_id := person_of(found.actor)) is not None:
            await self._limits.take_of_user(found.organization_id, user_id)
        elif (counted := self._limits.take(found.actor, actor.rate_limit)) is not None:
            await counted
        return principal, found

    async def require(self, organization_id: OrganizationId, impersonation_id: ImpersonationId) -> None:
        """Raises UNAUTHENTICATED once it is over."""
        await self._principal(await self._impersonations.get(organization_id, impersonation_id))

    async def require_may_begin(self, organization_id: OrganizationId, actor: ApiKeyId, user_id: UserId) -> Principal:
        """The user as a caller. Raises FORBIDDEN `impersonation_refused`, NOT_FOUND
        `user_not_found`."""
        return (await self._allowed(organization_id, actor, user_id))[0]

    async def _allowed(
        self, organization_id: OrganizationId, actor: ApiKeyId, user_id: UserId
    ) -> tuple[Principal, _Actor]:
        acts = await self._actor(organization_id, actor)
        if acts is None:
            raise refused("This needs a platform key, or a user whom an admin lets act as others.")
        user = await self._users.admitted(organization_id, user_id)
        if user is None:
            raise ServiceError("user_not_found", ErrorKind.NOT_FOUND, f"There is no active user {user_id!r}.")
        principal = await self._caller(user)
        if user.actor == actor or not principal.permissions <= acts.permissions:
            raise refused("Act as another user of the organization, with no permission that you lack.")
        return principal, acts

    async def _principal(self, impersonation: Impersonation | None) -> tuple[Principal, _Actor]:
        if impersonation is None or not impersonation.is_open(self._clock.now()):
            raise invalid_token()
        try:
            user, actor = await self._allowed(impersonation.organization_id, impersonation.actor, impersonation.user_id)
        except ServiceError as error:
            if error.kind not in (ErrorKind.FORBIDDEN, ErrorKind.NOT_FOUND):
                raise
            raise invalid_token() from None
        principal = replace(
            user,
            key_id=impersonation.acting,
            user_until=impersonation.expires_at,
            impersonation_id=impersonation.id,
        )
        return principal, actor

    async def _actor(self, organization_id: OrganizationId, actor: ApiKeyId) -> _Actor | None:
        """Who may act as others; None for all others."""
        if (user_id := person_of(actor)) is not None:
            user = await self._users.admitted(organization_id, user_id)
            if user is None or not user.may_impersonate:
                return None
            return _Actor(permissions=(await self._caller(user)).permissions)
        key = await self._identities.key(organization_id, actor)
        if key is None or not key.platform or key.revoked_at is not None:
            return None
        is_valid = key.expires_at is None or key.expires_at > self._clock.now()
        return _Actor(permissions=key.role.permissions, rate_limit=key.rate_limit) if is_valid else None

    async def _caller(self, user: User) -> Principal:
        return user.principal(self._clock.now(), await granted_to(user, self._roles))


def refused(detail: str) -> ServiceError:
    """FORBIDDEN."""
    return ServiceError("impersonation_refused", ErrorKind.FORBIDDEN, detail)
