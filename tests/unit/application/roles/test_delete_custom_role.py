"""DeleteCustomRole: which roles can be deleted."""

from dataclasses import replace

import pytest

from application.roles.delete_custom_role import DeleteCustomRole, DeleteCustomRoleCommand
from domain.audit.event import AuditAction
from domain.identity.role import Role
from tests.builders import KEY, a_key
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.roles.roles import a_state

pytestmark = pytest.mark.requirement("P2")
COMMAND = DeleteCustomRoleCommand(principal=a_principal(), name="support")


async def delete(state: InMemoryState, command: DeleteCustomRoleCommand = COMMAND) -> None:
    deleting = DeleteCustomRole(custom_roles=InMemoryCustomRoleStore(state), clock=FixedClock(), ids=SequentialIds())
    await deleting.execute(command)


async def test_a_role_that_no_one_has_is_deleted_and_audited() -> None:
    state = a_state()
    await delete(state)
    assert not state.custom_roles
    [entry] = state.audit.values()
    assert (entry.action, entry.resource) == (AuditAction.ROLE_DELETED, "support")
    with refused("role_not_found"):
        await delete(state)


async def test_a_role_in_use_stays() -> None:
    state = a_state()
    state.keys[KEY] = a_key(role=Role.VIEWER, custom_role="support")
    with refused("role_in_use"):
        await delete(state)
    assert state.custom_roles


async def test_others_delete_nothing() -> None:
    with refused("role_insufficient"):
        await delete(a_state(), replace(COMMAND, principal=a_principal(Role.OPERATOR)))
    with refused("role_not_found"):
        await delete(a_state(), replace(COMMAND, principal=a_stranger()))
    with refused("impersonation_refused"):
        acting = replace(a_principal(), impersonation_id=an_impersonation().id)
        await delete(a_state(), replace(COMMAND, principal=acting))
