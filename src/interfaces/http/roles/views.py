"""Roles as JSON."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from domain.identity.custom_role import CustomRole
from domain.identity.permission import DESCRIPTIONS, Permission
from domain.identity.role import Role
from domain.json_value import JsonObject
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import CreatedAt, Items, UpdatedAt, Version


class RoleView(TypedDict):
    """A custom role."""

    name: Annotated[str, "Name of the role. Keys, users and rules of identity providers name it as `custom_role`."]
    description: Annotated[str, "What the role is for."]
    permissions: Annotated[list[Permission], "What its holders may do, besides reading."]
    version: Version
    created_at: CreatedAt
    updated_at: UpdatedAt


class BuiltInRoleView(TypedDict):
    """A built-in role, which cannot be changed."""

    name: Annotated[Role, "Name of the role."]
    permissions: Annotated[list[Permission], "What its holders may do, besides reading."]


class PermissionView(TypedDict):
    """A permission."""

    name: Annotated[Permission, "Name of the permission."]
    description: Annotated[str, "What it permits."]


class RoleList(TypedDict):
    """All roles of the organization, and all permissions."""

    data: Items[RoleView]
    built_in: Annotated[list[BuiltInRoleView], "The built-in roles."]
    permissions: Annotated[list[PermissionView], "All permissions that roles can have."]


def role_view(role: CustomRole) -> RoleView:
    return {
        "name": role.name,
        "description": role.description,
        "permissions": [*role.permissions],
        "version": role.version,
        "created_at": timestamp(role.created_at),
        "updated_at": timestamp(role.changed_at),
    }


def role_list(roles: Sequence[CustomRole]) -> RoleList:
    return {
        "data": [role_view(role) for role in roles],
        "built_in": [{"name": role, "permissions": in_order(role.permissions)} for role in Role],
        "permissions": [{"name": name, "description": text} for name, text in DESCRIPTIONS.items()],
    }


def role_fields(name: str) -> JsonObject:
    """The fields of a body that give the role of this name, built in or custom."""
    return {"role": name} if name in list(Role) else {"custom_role": name}


def in_order(permissions: frozenset[Permission]) -> list[Permission]:
    return [each for each in Permission if each in permissions]
