"""AssignableRoles: which roles a caller may give to keys and users."""

from application.identity.ports import CustomRoleStore
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.custom_role import CustomRole, permissions_held, require_within_own
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import OrganizationId

_UNKNOWN = f"is neither a custom role of the organization nor one of {', '.join(repr(role.value) for role in Role)}"


class AssignableRoles:
    """Rules:
    - A custom role is one of the organization, and stands in place of a built-in role.
    - No caller gives permissions that they do not have.
    """

    def __init__(self, *, custom_roles: CustomRoleStore) -> None:
        self._roles = custom_roles

    async def all(self, organization_id: OrganizationId) -> tuple[CustomRole, ...]:
        return await self._roles.all(organization_id)

    async def require(self, principal: Principal, role: Role, custom_role: str | None) -> None:
        """Raises INVALID `role_invalid`, FORBIDDEN `role_beyond_own`."""
        require_within_own(principal, await self.permissions(principal.organization_id, role, custom_role))

    async def permissions(
        self, organization_id: OrganizationId, role: Role, custom_role: str | None, path: str = "custom_role"
    ) -> frozenset[Permission]:
        """What a role permits, given in `path` of a request. Raises INVALID `role_invalid`."""
        if custom_role is None:
            return role.permissions
        roles = await self._roles.all(organization_id)
        wrong = []
        if role is not Role.VIEWER:
            wrong.append(Violation(path=path, message="is in place of a role: leave the role out"))
        if all(each.name != custom_role for each in roles):
            wrong.append(Violation(path=path, message=_UNKNOWN))
        if wrong:
            raise invalid("role_invalid", "The role is not valid.", *wrong)
        return permissions_held(roles, role, custom_role)
