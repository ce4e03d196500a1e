"""UpdateUser: who changes users, and what ends with a user's access."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.assignable_roles import AssignableRoles
from application.identity.token_cache import TokenCache
from application.revocation.stop_work_of_key import StopWorkOfKey
from application.revocation.stopped_work import StoppedWork, UpdatedUser
from application.revocation.update_user import NOTHING_STOPPED, UpdateUser, UpdateUserCommand
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, GroupId
from tests.builders import ORG, START
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import USER, a_user, an_impersonation
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

STOPPED = StoppedWork(runs=2, workflow_runs=1, gateway_sessions=3)
COMMAND = UpdateUserCommand(principal=a_principal(), user_id=USER)


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.users[USER] = a_user()
        self.cache: MockType = mocker.create_autospec(TokenCache, instance=True)
        self.work: MockType = mocker.create_autospec(StopWorkOfKey, instance=True)
        self.work.execute.return_value = STOPPED
        self._update = UpdateUser(
            users=InMemoryUserStore(self.state),
            assignable=AssignableRoles(custom_roles=InMemoryCustomRoleStore(self.state)),
            memberships=InMemoryOrganizationGroupStore(self.state),
            cache=self.cache,
            work=self.work,
            clock=FixedClock(),
            ids=SequentialIds(),
        )

    async def update(self, command: UpdateUserCommand) -> UpdatedUser:
        return await self._update.execute(command)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("P2")
async def test_a_deactivated_user_is_forgotten_and_what_they_started_ends(ports: Ports) -> None:
    updated = await ports.update(replace(COMMAND, status=UserStatus.DEACTIVATED))

    assert updated == UpdatedUser(user=a_user(status=UserStatus.DEACTIVATED), stopped=STOPPED)
    ports.cache.forget.assert_called_once_with(ApiKeyId(USER))
    ports.work.execute.assert_awaited_once_with(a_principal(), ApiKeyId(USER))
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.USER_UPDATED, "key_admin", USER)


@pytest.mark.requirement("P2")
async def test_a_removed_user_loses_name_and_address(ports: Ports) -> None:
    updated = await ports.update(replace(COMMAND, status=UserStatus.REMOVED))
    assert updated.user == replace(a_user(status=UserStatus.REMOVED), name=None, email=None)
    assert [entry.action for entry in ports.state.audit.values()] == [AuditAction.USER_REMOVED]


@pytest.mark.requirement("P2")
async def test_a_role_that_an_admin_sets_is_fixed_and_ends_nothing(ports: Ports) -> None:
    updated = await ports.update(replace(COMMAND, role=Role.ADMIN))
    assert updated == UpdatedUser(user=a_user(role=Role.ADMIN, role_fixed=True), stopped=NOTHING_STOPPED)
    ports.cache.forget.assert_called_once_with(ApiKeyId(USER))
    ports.work.execute.assert_not_awaited()


async def test_a_user_is_activated_again(ports: Ports) -> None:
    ports.state.users[USER] = a_user(status=UserStatus.DEACTIVATED)
    assert (await ports.update(replace(COMMAND, status=UserStatus.ACTIVE))).user == a_user()
    ports.work.execute.assert_not_awaited()


async def test_repeating_a_change_ends_what_a_failure_left(ports: Ports) -> None:
    ports.work.execute.side_effect = storage_away()
    deactivate = replace(COMMAND, status=UserStatus.DEACTIVATED)
    with pytest.raises(ServiceError):
        await ports.update(deactivate)
    ports.work.execute.side_effect = None
    assert (await ports.update(deactivate)).stopped == STOPPED
    assert len(ports.state.audit) == 1


@pytest.mark.requirement("P2")
async def test_others_do_not_change_a_user_and_nobody_themselves(ports: Ports) -> None:
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await ports.update(replace(COMMAND, principal=a_principal(role), role=Role.ADMIN))
    with refused("user_not_found"):
        await ports.update(replace(COMMAND, principal=a_stranger(), status=UserStatus.REMOVED))
    for own in (replace(a_principal(), key_id=ApiKeyId(USER)), replace(a_principal(), key_of=USER)):
        with refused("user_is_caller"):
            await ports.update(replace(COMMAND, principal=own, may_impersonate=True))
    assert ports.state.users == {USER: a_user()}


@pytest.mark.requirement("P2")
async def test_a_removed_user_leaves_the_groups_of_the_organization_and_a_deactivated_one_does_not(
    ports: Ports,
) -> None:
    group = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="Leads", members=(USER,), created_at=START, changed_at=START
    )
    ports.state.organization_groups[group.id] = group
    await ports.update(replace(COMMAND, status=UserStatus.DEACTIVATED))
    assert ports.state.organization_groups[group.id] == group
    await ports.update(replace(COMMAND, status=UserStatus.REMOVED))
    assert ports.state.organization_groups[group.id].members == ()


@pytest.mark.requirement("P7")
async def test_an_admin_lets_a_user_act_as_others_and_no_longer(ports: Ports) -> None:
    allowed = await ports.update(replace(COMMAND, may_impersonate=True))
    assert (allowed.user.may_impersonate, allowed.stopped) == (True, NOTHING_STOPPED)
    assert not (await ports.update(replace(COMMAND, may_impersonate=False))).user.may_impersonate
    await ports.update(replace(COMMAND, may_impersonate=True))
    assert not (await ports.update(replace(COMMAND, status=UserStatus.REMOVED))).user.may_impersonate


@pytest.mark.requirement("P7")
async def test_no_user_is_changed_in_the_name_of_another_person(ports: Ports) -> None:
    acting = replace(a_principal(), impersonation_id=an_impersonation().id)
    with refused("impersonation_refused"):
        await ports.update(replace(COMMAND, principal=acting, role=Role.ADMIN))
