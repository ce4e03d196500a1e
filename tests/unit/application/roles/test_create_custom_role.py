"""CreateCustomRole: who names which permissions."""

from dataclasses import replace

import pytest

from application.roles.create_custom_role import CreateCustomRole, CreateCustomRoleCommand
from domain.audit.event import AuditAction
from domain.identity.custom_role import MAX_ROLES
from domain.identity.permission import Permission
from domain.identity.role import Role
from tests.builders import ORG
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused
from tests.unit.application.actors import a_principal, roles_below
from tests.unit.application.roles.roles import SUPPORT, a_holder

pytestmark = pytest.mark.requirement("P2")
COMMAND = CreateCustomRoleCommand(
    principal=a_principal(),
    name="support",
    permissions=(Permission.RUNS_START, Permission.APPROVALS_DECIDE, Permission.RUNS_START),
)


def creating(state: InMemoryState) -> CreateCustomRole:
    return CreateCustomRole(custom_roles=InMemoryCustomRoleStore(state), clock=FixedClock(), ids=SequentialIds())


async def test_a_role_is_stored_with_each_permission_once_and_audited() -> None:
    state = InMemoryState()
    assert await creating(state).execute(COMMAND) == SUPPORT
    assert state.custom_roles == {(ORG, "support"): SUPPORT}
    [entry] = state.audit.values()
    assert (entry.action, entry.resource) == (AuditAction.ROLE_CREATED, "support")
    assert entry.details == {"permissions": ["approvals.decide", "runs.start"]}


@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_it_needs_the_permission_to_manage_roles(role: Role) -> None:
    with refused("role_insufficient"):
        await creating(InMemoryState()).execute(replace(COMMAND, principal=a_principal(role)))


async def test_no_caller_names_a_permission_that_they_do_not_have() -> None:
    state = InMemoryState()
    manager = a_holder(Permission.ROLES_MANAGE, Permission.RUNS_START)
    with refused("role_beyond_own"):
        await creating(state).execute(replace(COMMAND, principal=manager))
    assert not state.custom_roles
    own = replace(COMMAND, principal=manager, permissions=(Permission.RUNS_START,))
    assert (await creating(state).execute(own)).permissions == (Permission.RUNS_START,)


async def test_names_are_used_once_and_are_not_those_of_built_in_roles() -> None:
    state = InMemoryState()
    await creating(state).execute(COMMAND)
    with refused("role_exists"):
        await creating(state).execute(COMMAND)
    with refused("role_invalid"):
        await creating(state).execute(replace(COMMAND, name="viewer"))


async def test_there_are_so_many_roles_and_no_more() -> None:
    state = InMemoryState()
    for number in range(MAX_ROLES):
        await creating(state).execute(replace(COMMAND, name=f"role-{number}"))
    with refused("too_many_roles"):
        await creating(state).execute(COMMAND)
