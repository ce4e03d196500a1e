"""Principals of every role, for tests of use cases."""

from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, OrganizationId
from tests.builders import ORG, OTHER_ORG


def a_principal(role: Role = Role.ADMIN, *, organization_id: OrganizationId = ORG) -> Principal:
    """A key of ORG with this role."""
    return Principal(organization_id=organization_id, key_id=ApiKeyId(f"key_{role.value}"), role=role, teams=None)


def a_stranger() -> Principal:
    """The admin of the other organization."""
    return a_principal(organization_id=OTHER_ORG)


def roles_below(needed: Role) -> list[Role]:
    """Every role that does not include `needed`."""
    return [role for role in Role if not role.includes(needed)]
