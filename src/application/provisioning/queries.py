"""Reading provisioned people and groups."""

from application.provisioning.ports import GroupStore, ProvisionedUserStore
from domain.errors import existing
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import Group, ProvisionedUser
from domain.ids import GroupId, UserId


class FindProvisionedUsers:
    """A directory sees the people whom it manages."""

    def __init__(self, *, provisioned: ProvisionedUserStore) -> None:
        self._provisioned = provisioned

    async def execute(self, provider: IdentityProvider, user_id: UserId) -> ProvisionedUser:
        """Raises NOT_FOUND."""
        return existing(await self._provisioned.get(provider, user_id), "user", user_id)

    async def named(self, provider: IdentityProvider, user_name: str) -> tuple[ProvisionedUser, ...]:
        """At most one."""
        found = await self._provisioned.named(provider, user_name)
        return () if found is None else (found,)

    async def all(self, provider: IdentityProvider) -> tuple[ProvisionedUser, ...]:
        return await self._provisioned.all(provider)


class FindGroups:
    """A directory sees the groups that it manages."""

    def __init__(self, *, groups: GroupStore) -> None:
        self._groups = groups

    async def execute(self, provider: IdentityProvider, group_id: GroupId) -> Group:
        """Raises NOT_FOUND."""
        return existing(await self._groups.group(provider, group_id), "group", group_id)

    async def all(self, provider: IdentityProvider) -> tuple[Group, ...]:
        found = await self._groups.groups(provider.organization_id)
        return tuple(group for group in found if group.provider_id == provider.id)
