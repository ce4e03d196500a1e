"""Ports of the groups slice."""

from collections.abc import Callable, Collection
from typing import Protocol

from domain.audit.event import AuditEvent
from domain.identity.organization_group import OrganizationGroup
from domain.ids import GroupId, OrganizationId, UserId
from domain.teams import Teams

OrganizationGroupChange = Callable[[OrganizationGroup], tuple[OrganizationGroup, AuditEvent] | None]
"""Decides over what is stored, with its row locked; None for no change."""


class OrganizationGroupStore(Protocol):
    """Groups that organizations manage; at most `MAX_GROUPS` each."""

    async def add(self, group: OrganizationGroup, audit: AuditEvent) -> None:
        """Raises CONFLICT `group_name_taken`, `too_many_groups`."""

    async def all(self, organization_id: OrganizationId) -> tuple[OrganizationGroup, ...]:
        """By name."""

    async def change(
        self,
        organization_id: OrganizationId,
        group_id: GroupId,
        decide: OrganizationGroupChange,
        *,
        teams: Teams = None,
    ) -> OrganizationGroup:
        """Raises NOT_FOUND `group_not_found`, CONFLICT `group_name_taken`, `group_owns` for another
        name while something belongs to it, and what `decide` raises. `group_owns` names only what
        is seen with `teams`."""

    async def delete(
        self, organization_id: OrganizationId, group_id: GroupId, audit: AuditEvent, *, teams: Teams = None
    ) -> bool:
        """False if there is none. Raises CONFLICT `group_owns`, as `change`, while agents, MCP
        servers or threads belong to it."""

    async def strangers(self, organization_id: OrganizationId, users: Collection[UserId]) -> tuple[UserId, ...]:
        """Which of these ids are no users of the organization, or removed ones; in order."""
