"""Reading roles."""

from application.identity.ports import CustomRoleStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.custom_role import CustomRole
from domain.identity.role import Role


class ListCustomRoles:
    """Any role: what each custom role of the organization permits, by name."""

    def __init__(self, *, custom_roles: CustomRoleStore) -> None:
        self._roles = custom_roles

    async def execute(self, principal: Principal) -> tuple[CustomRole, ...]:
        principal.require(Role.VIEWER)
        return await self._roles.all(principal.organization_id)


class GetCustomRole:
    """Any role: one custom role."""

    def __init__(self, *, custom_roles: CustomRoleStore) -> None:
        self._roles = custom_roles

    async def execute(self, principal: Principal, name: str) -> CustomRole:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        found = [role for role in await self._roles.all(principal.organization_id) if role.name == name]
        if not found:
            raise not_found("role", name)
        return found[0]
