"""Permissions of the custom role of a key or a user."""

from application.identity.ports import RoleGrants
from domain.identity.api_key import ApiKey
from domain.identity.permission import Permission
from domain.identity.user import User


async def granted_to(holder: ApiKey | User, grants: RoleGrants) -> frozenset[Permission]:
    """Empty for a holder of a built-in role, without a read."""
    if holder.custom_role is None:
        return frozenset()
    return await grants.permissions_of(holder.organization_id, holder.custom_role)
