"""Reading groups."""

from collections.abc import Iterable
from typing import TypeAlias

from application.groups.ports import OrganizationGroupStore
from application.provisioning.ports import GroupStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.organization_group import OrganizationGroup
from domain.identity.permission import Permission
from domain.identity.provisioning import Group

AnyGroup: TypeAlias = OrganizationGroup | Group
"""A group that the organization manages, or one that a directory manages."""


class ListGroups:
    """Admins see all groups of their organization, by name, with their members."""

    def __init__(self, *, organization_groups: OrganizationGroupStore, groups: GroupStore) -> None:
        self._own = organization_groups
        self._of_directories = groups

    async def execute(self, principal: Principal) -> tuple[AnyGroup, ...]:
        """Raises FORBIDDEN."""
        principal.require(Permission.GROUPS_MANAGE)
        organization_id = principal.organization_id
        found: list[AnyGroup] = [*await self._own.all(organization_id)]
        found += await self._of_directories.groups(organization_id)
        return tuple(sorted(found, key=lambda group: (group.name, group.id)))


def group_named(groups: Iterable[AnyGroup], wanted: str) -> AnyGroup:
    """The group with this id, or this name. Raises NOT_FOUND."""
    found: AnyGroup | None = None
    for group in groups:
        if group.id == wanted or (found is None and group.name == wanted):
            found = group
    if found is None:
        raise not_found("group", wanted)
    return found


class GetGroup:
    """Admins see each group of their organization, by id or name."""

    def __init__(self, *, list_groups: ListGroups) -> None:
        self._list = list_groups

    async def execute(self, principal: Principal, group: str) -> AnyGroup:
        """Raises FORBIDDEN, NOT_FOUND."""
        return group_named(await self._list.execute(principal), group)
