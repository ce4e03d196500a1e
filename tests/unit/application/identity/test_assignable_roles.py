"""AssignableRoles: which roles a caller may give."""

import pytest

from application.identity.assignable_roles import AssignableRoles
from domain.identity.permission import Permission
from domain.identity.role import Role
from tests.builders import ORG, OTHER_ORG
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.unit.application.roles.roles import SUPPORT, a_holder, a_state

pytestmark = pytest.mark.requirement("P2")
ROLES = AssignableRoles(custom_roles=InMemoryCustomRoleStore(a_state()))


async def test_a_role_is_given_by_those_who_have_all_that_it_permits() -> None:
    await ROLES.require(a_principal(), Role.ADMIN, None)
    await ROLES.require(a_holder(*SUPPORT.permissions), Role.VIEWER, "support")
    await ROLES.require(a_holder(Permission.RUNS_START), Role.RUNNER, None)
    for role, custom_role in ((Role.OPERATOR, None), (Role.VIEWER, "support")):
        with refused("role_beyond_own"):
            await ROLES.require(a_holder(Permission.RUNS_START), role, custom_role)


async def test_a_custom_role_is_one_of_the_organization_and_in_place_of_a_role() -> None:
    assert await ROLES.permissions(ORG, Role.VIEWER, "support") == frozenset(SUPPORT.permissions)
    with refused("role_invalid"):
        await ROLES.permissions(OTHER_ORG, Role.VIEWER, "support")
    with refused("role_invalid"):
        await ROLES.permissions(ORG, Role.ADMIN, "support")
