"""The contracts of `CustomRoleStore` and `RoleGrants`."""

from dataclasses import replace

import pytest

from domain.audit.event import AuditAction, AuditEvent
from domain.identity.custom_role import MAX_ROLES
from domain.identity.identity_provider import RoleRule
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, OrganizationId
from tests.builders import KEY, ORG, OTHER_ORG, START, a_key, after, an_audit_event
from tests.contract.stores import Stores
from tests.people_builders import USER, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.roles.roles import SUPPORT

pytestmark = pytest.mark.requirement("P2")


def audit(number: int, organization_id: OrganizationId = ORG) -> AuditEvent:
    return replace(an_audit_event(number, action=AuditAction.ROLE_UPDATED), organization_id=organization_id)


async def test_roles_are_stored_changed_and_deleted_and_their_names_are_distinct(stores: Stores) -> None:
    roles, first = stores.custom_roles, replace(SUPPORT, name="a-role", permissions=())
    await roles.add(SUPPORT, audit(1))
    await roles.add(first, audit(2))
    await roles.add(replace(SUPPORT, organization_id=OTHER_ORG, permissions=()), audit(3, OTHER_ORG))
    assert await roles.all(ORG) == (first, SUPPORT)
    with refused("role_exists"):
        await roles.add(SUPPORT, audit(4))
    assert await roles.permissions_of(ORG, "support") == frozenset(SUPPORT.permissions)
    assert await roles.permissions_of(ORG, "none") == frozenset()
    changed = replace(SUPPORT, permissions=(Permission.RUNS_START,), version=2, changed_at=after(5))
    assert await roles.change(ORG, "support", lambda _: (changed, audit(5))) == changed
    assert await roles.change(ORG, "support", lambda _: None) == changed
    assert await roles.permissions_of(ORG, "support") == {Permission.RUNS_START}
    assert await roles.permissions_of(OTHER_ORG, "support") == frozenset()
    with refused("role_not_found"):
        await roles.change(ORG, "none", lambda _: None)
    assert not await roles.delete(ORG, "none", audit(6))
    assert await roles.delete(ORG, "support", audit(7))
    assert await roles.all(ORG) == (first,)
    assert len(await roles.all(OTHER_ORG)) == 1


async def test_there_are_so_many_roles_and_no_more(stores: Stores) -> None:
    for number in range(MAX_ROLES):
        await stores.custom_roles.add(replace(SUPPORT, name=f"role-{number}"), audit(number + 1))
    with refused("too_many_roles"):
        await stores.custom_roles.add(SUPPORT, audit(200))


async def test_a_role_that_a_valid_key_has_is_in_use(stores: Stores) -> None:
    roles = stores.custom_roles
    await roles.add(SUPPORT, audit(1))
    key = a_key(role=Role.VIEWER, custom_role="support")
    await stores.identity.add_key(key, audit(2))
    assert (await stores.identity.key(ORG, KEY)) == key
    expired = replace(
        a_key(ApiKeyId("key_2"), token="dgm_2", role=Role.VIEWER, custom_role="support"), expires_at=START
    )
    await stores.identity.add_key(expired, audit(3))
    with refused("role_in_use"):
        await roles.delete(ORG, "support", audit(4))
    await stores.identity.revoke_key(ORG, KEY, audit(5))
    assert await roles.delete(ORG, "support", replace(audit(6), at=after(1)))


async def test_a_role_that_a_user_has_is_in_use_and_a_sign_in_gives_and_takes_it(stores: Stores) -> None:
    roles = stores.custom_roles
    await roles.add(SUPPORT, audit(1))
    user = a_user(role=Role.VIEWER, custom_role="support")
    await stores.user_access.add(user, audit(2))
    assert await stores.users.get(ORG, USER) == user
    with refused("role_in_use"):
        await roles.delete(ORG, "support", audit(3))
    await stores.user_access.saw(a_user(role=Role.RUNNER), audit(4))
    assert (await stores.users.get(ORG, USER)) == a_user(role=Role.RUNNER)
    fixed = replace(user, role_fixed=True)
    await stores.users.change(ORG, USER, lambda _: (fixed, audit(5)))
    await stores.user_access.saw(a_user(role=Role.RUNNER), audit(6))
    assert await stores.users.get(ORG, USER) == fixed
    removed = replace(fixed, status=UserStatus.REMOVED)
    await stores.users.change(ORG, USER, lambda _: (removed, audit(7)))
    assert await roles.delete(ORG, "support", audit(8))


@pytest.mark.parametrize("installation", [False, True])
async def test_a_role_that_a_rule_gives_is_in_use(stores: Stores, installation: bool) -> None:
    roles = stores.custom_roles
    await roles.add(SUPPORT, audit(1))
    await roles.add(replace(SUPPORT, organization_id=OTHER_ORG), audit(2, OTHER_ORG))
    rule = RoleRule(
        claim="groups",
        value="support",
        role=Role.VIEWER,
        custom_role="support",
        organization_id=OTHER_ORG if installation else None,
    )
    await stores.identity_providers.add(a_provider(rules=(rule,), installation=installation), audit(3))
    named, free = (OTHER_ORG, ORG) if installation else (ORG, OTHER_ORG)
    with refused("role_in_use"):
        await roles.delete(named, "support", audit(4, named))
    assert await roles.delete(free, "support", audit(5, free))
