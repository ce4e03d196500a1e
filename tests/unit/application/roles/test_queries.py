"""Reading custom roles."""

import pytest

from application.roles.queries import GetCustomRole, ListCustomRoles
from domain.identity.role import Role
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.roles.roles import SUPPORT, a_state

pytestmark = pytest.mark.requirement("P2")


async def test_every_role_reads_the_roles_of_its_organization() -> None:
    store = InMemoryCustomRoleStore(a_state())
    viewer = a_principal(Role.VIEWER)
    assert await ListCustomRoles(custom_roles=store).execute(viewer) == (SUPPORT,)
    assert await GetCustomRole(custom_roles=store).execute(viewer, "support") == SUPPORT
    assert await ListCustomRoles(custom_roles=store).execute(a_stranger()) == ()
    with refused("role_not_found"):
        await GetCustomRole(custom_roles=store).execute(a_stranger(), "support")
