"""UpdateCustomRole: who changes what a role permits, and that caches forget it."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.token_cache import TokenCache
from application.roles.update_custom_role import UpdateCustomRole, UpdateCustomRoleCommand
from domain.audit.event import AuditAction
from domain.identity.permission import Permission
from domain.identity.role import Role
from tests.builders import ORG, START
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.roles.roles import SUPPORT, a_holder, a_state

pytestmark = pytest.mark.requirement("P2")
COMMAND = UpdateCustomRoleCommand(principal=a_principal(), name="support", permissions=(Permission.RUNS_START,))


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state()
        self.cache: MockType = mocker.create_autospec(TokenCache, instance=True)
        self.update = UpdateCustomRole(
            custom_roles=InMemoryCustomRoleStore(self.state), cache=self.cache, clock=FixedClock(), ids=SequentialIds()
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_a_change_is_stored_audited_and_forgotten_by_caches(ports: Ports) -> None:
    changed = await ports.update.execute(replace(COMMAND, description="Answers."))
    assert changed == replace(
        SUPPORT, permissions=(Permission.RUNS_START,), description="Answers.", version=2, changed_at=START
    )
    ports.cache.forget_all.assert_called_once_with()
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.details) == (
        AuditAction.ROLE_UPDATED,
        {"added": [], "removed": ["approvals.decide"]},
    )


async def test_a_change_of_nothing_writes_nothing(ports: Ports) -> None:
    assert await ports.update.execute(replace(COMMAND, permissions=None)) == SUPPORT
    assert not ports.state.audit


async def test_others_change_nothing(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.update.execute(replace(COMMAND, principal=a_principal(Role.OPERATOR)))
    with refused("role_not_found"):
        await ports.update.execute(replace(COMMAND, principal=a_stranger()))
    with refused("version_conflict"):
        await ports.update.execute(replace(COMMAND, expected_version=7))
    assert ports.state.custom_roles[ORG, "support"] == SUPPORT


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ((Permission.RUNS_START,), (Permission.RUNS_START,)),
        (SUPPORT.permissions, (*SUPPORT.permissions, Permission.SECRETS_MANAGE)),
    ],
    ids=["what it had", "what it gets"],
)
async def test_no_caller_takes_or_gives_a_permission_that_they_do_not_have(
    ports: Ports, held: tuple[Permission, ...], wanted: tuple[Permission, ...]
) -> None:
    manager = a_holder(Permission.ROLES_MANAGE, *held)
    with refused("role_beyond_own"):
        await ports.update.execute(replace(COMMAND, principal=manager, permissions=wanted))
    assert ports.state.custom_roles[ORG, "support"] == SUPPORT
