"""CallerTeams: the groups whose agents, servers and threads callers see."""

from dataclasses import replace

from application.identity.granted import granted_to
from application.identity.ports import IdentityStore, Memberships, RoleGrants, UserAccess
from domain.identity.api_key import ApiKey, Principal, person_of
from domain.identity.permission import Permission
from domain.identity.user import User
from domain.ids import ApiKeyId, OrganizationId, UserId
from domain.teams import Teams

_NONE: frozenset[str] = frozenset()
_KEY = "key_"


class CallerTeams:
    """Rules:
    - Who manages the organization sees what every group owns.
    - A person sees what the groups own that they are in now.
    - A key that a user created, directly or with another key of theirs, sees what that user sees.
      Every other key is the organization's, and sees what every group owns.
    - Who acts as another user has no groups, and sees what no group owns. So does an actor that is
      neither.
    """

    def __init__(
        self,
        *,
        memberships: Memberships,
        identities: IdentityStore,
        user_access: UserAccess,
        custom_roles: RoleGrants,
    ) -> None:
        self._memberships = memberships
        self._identities = identities
        self._users = user_access
        self._roles = custom_roles

    async def told(self, principal: Principal) -> Principal:
        """The caller with their teams as they are now."""
        if principal.impersonation_id is not None:
            return principal
        if principal.may(Permission.ORGANIZATION_MANAGE):
            return replace(principal, teams=None)
        if (user_id := principal.person_id) is not None:
            groups = await self._memberships.groups_of(principal.organization_id, user_id)
            return replace(principal, teams=groups)
        return replace(principal, teams=await self._of_creator(principal.organization_id, principal.key_of))

    async def of_actor(self, organization_id: OrganizationId, actor: ApiKeyId) -> Teams:
        """Those of the user or the key that a run or a gateway session names."""
        if (user_id := person_of(actor)) is not None:
            return await self._of_user(organization_id, user_id)
        if not actor.startswith(_KEY):
            return _NONE
        key = await self._identities.key(organization_id, actor)
        if key is None:
            return _NONE
        return await self.of_key(key)

    async def of_key(self, key: ApiKey) -> Teams:
        """Those of the stored key."""
        if await self._manages(key):
            return None
        return await self._of_creator(key.organization_id, key.person_id)

    async def of_user(self, user: User) -> Teams:
        """Those of the stored user, who is admitted."""
        if await self._manages(user):
            return None
        return await self._memberships.groups_of(user.organization_id, user.id)

    async def _of_creator(self, organization_id: OrganizationId, user_id: UserId | None) -> Teams:
        return None if user_id is None else await self._of_user(organization_id, user_id)

    async def _of_user(self, organization_id: OrganizationId, user_id: UserId) -> Teams:
        user = await self._users.admitted(organization_id, user_id)
        return _NONE if user is None else await self.of_user(user)

    async def _manages(self, holder: ApiKey | User) -> bool:
        granted = await granted_to(holder, self._roles)
        permissions = holder.role.permissions if holder.custom_role is None else granted
        return Permission.ORGANIZATION_MANAGE in permissions
