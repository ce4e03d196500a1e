"""Groups of directories in memory."""

from dataclasses import replace

from application.provisioning.ports import GroupChange
from domain.audit.event import AuditEvent
from domain.errors import conflict, existing
from domain.identity.identity_provider import IdentityProvider
from domain.identity.organization_group import name_of_owner
from domain.identity.provisioning import Group
from domain.ids import GroupId, IdentityProviderId, OrganizationId
from tests.doubles.owners import owned_by
from tests.doubles.state import InMemoryState


class InMemoryGroupStore:
    """The ports `GroupStore` and `GroupNames` over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add_group(self, group: Group, audit: AuditEvent) -> Group:
        """Store a group."""
        stored = self._store(group)
        self._state.record(audit)
        return stored

    async def group(self, provider: IdentityProvider, group_id: GroupId) -> Group | None:
        """By id."""
        found = self._state.groups.get(group_id)
        return found if found is not None and found.provider_id == provider.id else None

    async def groups(self, organization_id: OrganizationId) -> tuple[Group, ...]:
        """The organization's, by name."""
        theirs = (group for group in self._state.groups.values() if group.organization_id == organization_id)
        return tuple(sorted(theirs, key=lambda group: (group.name, group.id)))

    async def change_group(self, provider: IdentityProvider, group_id: GroupId, decide: GroupChange) -> Group:
        """Store what `decide` says."""
        stored = existing(await self.group(provider, group_id), "group", group_id)
        decided = decide(stored)
        if decided is None:
            return stored
        changed, audit = decided
        changed = self._store(changed)
        self._state.record(audit)
        return changed

    async def delete_group(self, provider: IdentityProvider, group_id: GroupId, audit: AuditEvent) -> bool:
        """Remove a group."""
        if await self.group(provider, group_id) is None:
            return False
        del self._state.groups[group_id]
        self._state.record(audit)
        return True

    async def names_of(self, provider_id: IdentityProviderId, subject: str) -> tuple[str, ...]:
        """Of a person whom the directory manages."""
        users = {
            user_id
            for user_id, user in self._state.provisioned.items()
            if user.provider_id == provider_id and self._state.users[user_id].subject == subject
        }
        return tuple(
            sorted(
                group.name
                for group in self._state.groups.values()
                if group.provider_id == provider_id and users.intersection(group.members)
            )
        )

    def _store(self, group: Group) -> Group:
        for other in self._state.groups.values():
            if other.id != group.id and (other.provider_id, other.name) == (group.provider_id, group.name):
                raise conflict("group_name_taken", "There is one of this name.")
        before = self._state.groups.get(group.id)
        is_named = before is None or before.name != group.name
        names = [
            each.name
            for each in self._state.organization_groups.values()
            if each.organization_id == group.organization_id
        ]
        names += [
            each.name
            for each in self._state.groups.values()
            if each.id != group.id and each.organization_id == group.organization_id
        ]
        if is_named and group.name in names and owned_by(self._state, group.organization_id, group.name):
            raise name_of_owner()
        users = self._state.users
        members = [
            member
            for member in sorted(set(group.members))
            if member in users and users[member].organization_id == group.organization_id
        ]
        stored = replace(group, members=tuple(members))
        self._state.groups[group.id] = stored
        return stored
