"""Checks of a group before it is stored, and the group behind an id."""

from dataclasses import replace

from application.groups.ports import OrganizationGroupStore
from application.groups.queries import AnyGroup, group_named
from application.identity.ports import IdentityProviderDirectory
from application.provisioning.ports import GroupStore
from domain.errors import Violation, conflict, invalid
from domain.identity.identity_provider import IdentityProvider
from domain.identity.organization_group import GroupClaim, group_name_taken
from domain.identity.provisioning import Group
from domain.ids import GroupId, OrganizationId, UserId


class GroupChecks:
    """Rules:
    - A name is used once among all groups of the organization.
    - Members are users of the organization. Claims name an identity provider with which its people
      sign in, by id or name.
    - Groups of a directory are changed in the directory.
    """

    def __init__(
        self,
        *,
        organization_groups: OrganizationGroupStore,
        groups: GroupStore,
        identity_providers: IdentityProviderDirectory,
    ) -> None:
        self._own = organization_groups
        self._of_directories = groups
        self._providers = identity_providers

    async def all(self, organization_id: OrganizationId) -> tuple[AnyGroup, ...]:
        return (*await self._own.all(organization_id), *await self._of_directories.groups(organization_id))

    async def own_group(self, organization_id: OrganizationId, wanted: str) -> GroupId:
        """By id or name. Raises NOT_FOUND, CONFLICT `group_managed_by_directory`."""
        found = group_named(await self.all(organization_id), wanted)
        if isinstance(found, Group):
            raise conflict(
                "group_managed_by_directory",
                "The company's directory manages this group by SCIM; change it there.",
                group_id=found.id,
            )
        return found.id

    async def require_free(self, organization_id: OrganizationId, name: str, *, but: GroupId | None = None) -> None:
        """Raises CONFLICT `group_name_taken`."""
        if any(each.name == name and each.id != but for each in await self.all(organization_id)):
            raise group_name_taken()

    async def require_users(self, organization_id: OrganizationId, users: tuple[UserId, ...], path: str) -> None:
        """Raises INVALID `group_invalid`."""
        strangers = set(await self._own.strangers(organization_id, users))
        wrong = [
            Violation(path=f"{path}.{index}", message="is no user of the organization")
            for index, user in enumerate(users)
            if user in strangers
        ]
        if wrong:
            raise invalid("group_invalid", "The group is not valid.", *wrong)

    async def resolved(self, organization_id: OrganizationId, claims: tuple[GroupClaim, ...]) -> tuple[GroupClaim, ...]:
        """Claims with the ids of their identity providers. Raises INVALID `group_invalid`."""
        if not claims:
            return ()
        offered = await self._providers.offered(organization_id)
        found = [_named(offered, claim.provider_id) for claim in claims]
        wrong = [
            Violation(path=f"claims.{index}.identity_provider", message="is no identity provider of the organization")
            for index, provider in enumerate(found)
            if provider is None
        ]
        if wrong:
            raise invalid("group_invalid", "The group is not valid.", *wrong)
        return tuple(
            replace(claim, provider_id=provider.id)
            for claim, provider in zip(claims, found, strict=True)
            if provider is not None
        )


def _named(offered: tuple[IdentityProvider, ...], wanted: str) -> IdentityProvider | None:
    return next((each for each in offered if wanted in (each.id, each.name)), None)
