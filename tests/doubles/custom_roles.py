"""Custom roles, in memory."""

from application.identity.ports import CustomRoleChange
from domain.audit.event import AuditEvent
from domain.errors import conflict, existing
from domain.identity.custom_role import MAX_ROLES, CustomRole, RoleHolders
from domain.identity.permission import Permission
from domain.identity.user import UserStatus
from domain.ids import OrganizationId
from tests.doubles.state import InMemoryState


class InMemoryCustomRoleStore:
    """The ports `CustomRoleStore` and `RoleGrants` over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, role: CustomRole, audit: AuditEvent) -> None:
        """Store a role."""
        if len(await self.all(role.organization_id)) >= MAX_ROLES:
            raise conflict("too_many_roles", "There are too many.")
        if (role.organization_id, role.name) in self._state.custom_roles:
            raise conflict("role_exists", "The organization has another role of this name.")
        self._state.custom_roles[role.organization_id, role.name] = role
        self._state.record(audit)

    async def all(self, organization_id: OrganizationId) -> tuple[CustomRole, ...]:
        """By name."""
        theirs = (each for each in self._state.custom_roles.values() if each.organization_id == organization_id)
        return tuple(sorted(theirs, key=lambda role: role.name))

    async def permissions_of(self, organization_id: OrganizationId, custom_role: str) -> frozenset[Permission]:
        """Empty for an unknown role."""
        found = self._state.custom_roles.get((organization_id, custom_role))
        return frozenset() if found is None else frozenset(found.permissions)

    async def change(self, organization_id: OrganizationId, name: str, decide: CustomRoleChange) -> CustomRole:
        """Store what `decide` says."""
        stored = existing(self._state.custom_roles.get((organization_id, name)), "role", name)
        decided = decide(stored)
        if decided is None:
            return stored
        self._state.custom_roles[organization_id, name] = decided[0]
        self._state.record(decided[1])
        return decided[0]

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove a role without holders."""
        if (organization_id, name) not in self._state.custom_roles:
            return False
        self._holders(organization_id, name, audit).require_none(name)
        del self._state.custom_roles[organization_id, name]
        self._state.record(audit)
        return True

    def _holders(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> RoleHolders:
        of = (organization_id, name)
        keys = (
            key.id
            for key in self._state.keys.values()
            if (key.organization_id, key.custom_role) == of
            and key.revoked_at is None
            and (key.expires_at is None or key.expires_at > audit.at)
        )
        users = (
            user.id
            for user in self._state.users.values()
            if (user.organization_id, user.custom_role) == of and user.status is not UserStatus.REMOVED
        )
        providers = {
            provider.name
            for provider in self._state.identity_providers.values()
            for rule in provider.rules
            if (rule.organization_id or provider.organization_id, rule.custom_role) == of
        }
        return RoleHolders(
            api_keys=tuple(sorted(keys)), users=tuple(sorted(users)), identity_providers=tuple(sorted(providers))
        )
