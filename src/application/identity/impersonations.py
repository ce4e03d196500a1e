"""Impersonations: what a token of one stands for now."""

from dataclasses import replace

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


class Impersonations:
    """Rules:
    - An impersonation is valid until it expires or is ended, while the user is admitted, and while its actor may begin it.
    - Who may act as another user: a platform key, and a user to whom an admin gave `may_impersonate`. No one acts as a
      user with a permission that they lack, or as themselves.
    - The caller has the permissions of the user, and the id that names both (`Impersonation.acting`): neither accounts and groups
      of the user, nor platform rights.
    - All is read at each request, so that every process refuses at once what has ended.
    - The service's rate limit applies to the actor.

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
        principal = await self._principal(found)
        assert found is not None  # a principal has one
        if (counted := self._limits.take(found.actor, None)) is not None:
            await counted
        return principal, found

    async def require(self, organization_id: OrganizationId, impersonation_id: ImpersonationId) -> None:
        """Raises UNAUTHENTICATED once it is over."""
        await self._principal(await self._impersonations.get(organization_id, impersonation_id))

    async def require_may_begin(self, organization_id: OrganizationId, actor: ApiKeyId, user_id: UserId) -> Principal:
        """The user as a caller. Raises FORBIDDEN `impersonation_refused`, NOT_FOUND `user_not_found`."""
        permissions = await self._permissions_of(organization_id, actor)
        if permissions is None:
            raise _refused("This needs a platform key, or a user whom an admin lets act as others.")
        user = await self._users.admitted(organization_id, user_id)
        if user is None:
            raise ServiceError("user_not_found", ErrorKind.NOT_FOUND, f"There is no active user {user_id!r}.")
        principal = await self._caller(user)
        if user.actor == actor or not principal.permissions <= permissions:
            raise _refused("Act as another user of the organization, with no permission that you lack.")
        return principal

    async def _principal(self, impersonation: Impersonation | None) -> Principal:
        if impersonation is None or not impersonation.is_open(self._clock.now()):
            raise invalid_token()
        try:
            user = await self.require_may_begin(
                impersonation.organization_id, impersonation.actor, impersonation.user_id
            )
        except ServiceError as error:
            if error.kind not in (ErrorKind.FORBIDDEN, ErrorKind.NOT_FOUND):
                raise
            raise invalid_token() from None
        return replace(
            user,
            key_id=impersonation.acting,
            user_until=impersonation.expires_at,
            impersonation_id=impersonation.id,
        )

    async def _permissions_of(self, organization_id: OrganizationId, actor: ApiKeyId) -> frozenset[Permission] | None:
        """Those of who may act as others; None for all others."""
        if (user_id := person_of(actor)) is not None:
            user = await self._users.admitted(organization_id, user_id)
            return (await self._caller(user)).permissions if user is not None and user.may_impersonate else None
        key = await self._identities.key(organization_id, actor)
        if key is None or not key.platform or key.revoked_at is not None:
            return None
        is_valid = key.expires_at is None or key.expires_at > self._clock.now()
        return key.role.permissions if is_valid else None

    async def _caller(self, user: User) -> Principal:
        return user.principal(self._clock.now(), await granted_to(user, self._roles))


def _refused(detail: str) -> ServiceError:
    return ServiceError("impersonation_refused", ErrorKind.FORBIDDEN, detail)
