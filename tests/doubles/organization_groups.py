"""Groups that organizations manage, in memory."""

from collections.abc import Collection
from dataclasses import replace

from application.groups.ports import OrganizationGroupChange
from domain.audit.event import AuditEvent
from domain.errors import conflict, existing
from domain.identity.organization_group import MAX_GROUPS, OrganizationGroup, group_name_taken, group_owns
from domain.identity.user import User, UserStatus
from domain.ids import GroupId, OrganizationId, UserId
from domain.teams import Teams, sees
from tests.doubles.owners import group_names, owned_by
from tests.doubles.state import InMemoryState


class InMemoryOrganizationGroupStore:
    """The ports `OrganizationGroupStore`, `ClaimedGroups` and `Memberships` over shared in-memory
    tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, group: OrganizationGroup, audit: AuditEvent) -> None:
        """Store a group."""
        if len(await self.all(group.organization_id)) >= MAX_GROUPS:
            raise conflict("too_many_groups", "There are too many.")
        self._store(group, audit)

    async def all(self, organization_id: OrganizationId) -> tuple[OrganizationGroup, ...]:
        """By name."""
        theirs = (each for each in self._state.organization_groups.values() if each.organization_id == organization_id)
        return tuple(sorted(theirs, key=lambda group: group.name))

    async def change(
        self,
        organization_id: OrganizationId,
        group_id: GroupId,
        decide: OrganizationGroupChange,
        *,
        teams: Teams = None,
    ) -> OrganizationGroup:
        """Store what `decide` says."""
        stored = existing(await self._get(organization_id, group_id), "group", group_id)
        decided = decide(stored)
        if decided is None:
            return stored
        if decided[0].name != stored.name:
            self._refuse_owner(stored, teams)
        self._store(*decided)
        return decided[0]

    async def delete(
        self, organization_id: OrganizationId, group_id: GroupId, audit: AuditEvent, *, teams: Teams = None
    ) -> bool:
        """Remove a group."""
        stored = await self._get(organization_id, group_id)
        if stored is None:
            return False
        self._refuse_owner(stored, teams)
        del self._state.organization_groups[group_id]
        self._state.record(audit)
        return True

    async def strangers(self, organization_id: OrganizationId, users: Collection[UserId]) -> tuple[UserId, ...]:
        """Those who are no users."""
        known = {
            user.id
            for user in self._state.users.values()
            if user.organization_id == organization_id and user.status is not UserStatus.REMOVED
        }
        return tuple(user for user in users if user not in known)

    async def with_claims(self, organization_id: OrganizationId) -> tuple[OrganizationGroup, ...]:
        """Those that have claims."""
        found = await self.all(organization_id)
        return tuple(replace(each, members=(), members_by_claim=()) for each in found if each.claims)

    async def set_claimed(self, user: User, groups: Collection[GroupId]) -> None:
        """Replace the user's memberships by claim."""
        for group in await self.all(user.organization_id):
            members = {*group.members_by_claim} - {user.id}
            members |= {user.id} if group.id in groups else set()
            self._put(replace(group, members_by_claim=tuple(sorted(members))))

    async def groups_of(self, organization_id: OrganizationId, user_id: UserId) -> frozenset[str]:
        """Of both kinds."""
        own = {
            each.name
            for each in await self.all(organization_id)
            if user_id in each.members or user_id in each.members_by_claim
        }
        of_directories = {
            each.name
            for each in self._state.groups.values()
            if each.organization_id == organization_id and user_id in each.members
        }
        return frozenset(own | of_directories)

    async def group_names(self, organization_id: OrganizationId) -> frozenset[str]:
        """Of both kinds."""
        return group_names(self._state, organization_id)

    async def leave_all(self, organization_id: OrganizationId, user_id: UserId) -> None:
        """Out of the organization's groups."""
        for group in await self.all(organization_id):
            members = tuple(each for each in group.members if each != user_id)
            claimed = tuple(each for each in group.members_by_claim if each != user_id)
            self._put(replace(group, members=members, members_by_claim=claimed))

    def _refuse_owner(self, group: OrganizationGroup, teams: Teams) -> None:
        if owned := owned_by(self._state, group.organization_id, group.name):
            raise group_owns(group.name, owned, named=sees(teams, group.name))

    async def _get(self, organization_id: OrganizationId, group_id: GroupId) -> OrganizationGroup | None:
        return next((each for each in await self.all(organization_id) if each.id == group_id), None)

    def _store(self, group: OrganizationGroup, audit: AuditEvent) -> None:
        for other in self._state.organization_groups.values():
            if other.id != group.id and (other.organization_id, other.name) == (group.organization_id, group.name):
                raise group_name_taken()
        self._put(group)
        self._state.record(audit)

    def _put(self, group: OrganizationGroup) -> None:
        self._state.organization_groups[group.id] = group
