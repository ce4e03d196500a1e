"""What roles permit: built-in ones, custom ones, and none that is not there."""

from dataclasses import replace
from itertools import pairwise

import pytest

from domain.errors import ServiceError
from domain.identity.custom_role import MAX_DESCRIPTION, RoleHolders, permissions_held
from domain.identity.permission import DESCRIPTIONS, NEEDED_FOR, Permission
from domain.identity.role import Role
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.unit.application.roles.roles import SUPPORT, a_holder

pytestmark = pytest.mark.requirement("P2")


def test_each_built_in_role_permits_more_than_the_one_before_and_admin_permits_all() -> None:
    roles = list(Role)
    for lower, higher in pairwise(roles):
        assert lower.permissions < higher.permissions
    assert (Role.VIEWER.permissions, Role.ADMIN.permissions) == (frozenset(), frozenset(Permission))
    assert set(DESCRIPTIONS) == set(Permission)


@pytest.mark.parametrize("role", list(Role))
def test_a_built_in_role_permits_what_it_includes(role: Role) -> None:
    caller = a_principal(role)
    assert [each for each in Role if caller.may(each)] == [each for each in Role if role.includes(each)]
    assert {each for each in Permission if caller.may(each)} == role.permissions


def test_a_custom_role_permits_what_it_lists_and_a_built_in_role_only_if_it_lists_all_of_it() -> None:
    holder = a_holder(*SUPPORT.permissions)
    assert [each for each in Role if holder.may(each)] == [Role.VIEWER, Role.RUNNER]
    assert holder.reads_as is Role.VIEWER
    assert a_holder(Permission.RUNS_CONTROL).reads_as is Role.OPERATOR
    with refused("role_insufficient"):
        holder.require(Permission.AGENTS_MANAGE)
    with refused("role_insufficient"):
        holder.require(Role.OPERATOR)


def test_a_name_without_a_role_gives_nothing() -> None:
    assert permissions_held((SUPPORT,), Role.VIEWER, "support") == frozenset(SUPPORT.permissions)
    assert permissions_held((SUPPORT,), Role.VIEWER, "deleted") == frozenset()
    assert permissions_held((SUPPORT,), Role.RUNNER, None) == Role.RUNNER.permissions
    assert replace(a_holder(), granted=frozenset()).permissions == frozenset()


@pytest.mark.parametrize("permission", list(NEEDED_FOR))
def test_a_role_without_what_a_permission_needs_is_refused(permission: Permission) -> None:
    with refused("role_invalid"):
        replace(SUPPORT, permissions=(permission,))
    needed = NEEDED_FOR[permission]
    assert not [each for each in needed if not NEEDED_FOR.get(each, frozenset()) <= needed]


def test_a_role_has_a_short_description() -> None:
    with refused("role_invalid"):
        replace(SUPPORT, description="x" * (MAX_DESCRIPTION + 1))


def test_who_has_a_role_is_named_up_to_a_number() -> None:
    RoleHolders().require_none("support")
    with pytest.raises(ServiceError, match="usr_9, …"):
        RoleHolders(users=tuple(f"usr_{number}" for number in range(11))).require_none("support")
