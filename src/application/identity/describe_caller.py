"""DescribeCaller: who the caller is."""

from dataclasses import dataclass
from datetime import datetime

from application.identity.ports import IdentityStore, OrganizationStore, UserStore
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.identity.impersonation import acting_as
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import User
from domain.ids import UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`name` is that of the person, or of the API key. Until `expires_at` the token or the key is
    valid; None: until it is revoked. `user` is None for an API key."""

    id: str
    name: str | None
    organization: Organization
    role: Role
    custom_role: str | None
    permissions: frozenset[Permission]
    platform: bool
    expires_at: datetime | None
    user: User | None = None


class DescribeCaller:
    """Rules:
    - Every caller learns who they are, with any role.
    - Role and permissions are those that this request has.

    Raises: ServiceError organization_not_found.
    """

    def __init__(self, *, organizations: OrganizationStore, identities: IdentityStore, users: UserStore) -> None:
        self._organizations = organizations
        self._identities = identities
        self._users = users

    async def execute(self, principal: Principal) -> Caller:
        organization_id = principal.organization_id
        organization = existing(await self._organizations.get(organization_id), "organization", organization_id)
        user, name, expires_at = None, None, principal.user_until
        if principal.user_until is not None:
            user = await self._users.get(organization_id, acting_as(principal.key_id) or UserId(principal.key_id))
            name = None if user is None else user.name
        elif (key := await self._identities.key(organization_id, principal.key_id)) is not None:
            name, expires_at = key.name, key.expires_at
        return Caller(
            id=principal.key_id,
            name=name,
            organization=organization,
            role=principal.role,
            custom_role=principal.custom_role,
            permissions=principal.permissions,
            platform=principal.platform,
            expires_at=expires_at,
            user=user,
        )
