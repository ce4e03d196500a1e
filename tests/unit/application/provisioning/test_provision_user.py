"""ProvisionUser: whom a directory adds."""

import pytest
from pytest_mock import MockerFixture

from application.provisioning.provision_user import ProvisionUser, ProvisionUserCommand
from domain.audit.event import AuditAction
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser
from domain.identity.role import Role
from domain.identity.user import UserStatus
from tests.builders import ORG
from tests.people_builders import ISSUER, USER, a_user
from tests.refusals import refused
from tests.unit.application.provisioning.directories import ABROAD, ANN, Directory

pytestmark = pytest.mark.requirement("P2")


@pytest.fixture
def directory(mocker: MockerFixture) -> Directory:
    return Directory(mocker)


async def add(directory: Directory, entry: DirectoryEntry = ANN, *, active: bool = True) -> ProvisionedUser:
    adding = ProvisionUser(
        provisioned=directory.provisioned, directory_access=directory.access, clock=directory.clock, ids=directory.ids
    )
    return await adding.execute(ProvisionUserCommand(provider=directory.provider, entry=entry, active=active))


async def test_a_new_person_is_a_viewer_until_they_sign_in(directory: Directory) -> None:
    added = await add(directory)
    user = directory.user(added.user.id)
    assert (user.organization_id, user.issuer, user.subject) == (ORG, ISSUER, "ann")
    assert (user.role, user.role_fixed, user.status) == (Role.VIEWER, False, UserStatus.ACTIVE)
    assert (user.name, user.email, user.last_sign_in_at) == ("Ann", "ann@example.com", None)
    assert (added.user, added.entry, added.version) == (user, ANN, 1)
    assert directory.actions == [AuditAction.USER_PROVISIONED]


async def test_without_an_id_of_the_directory_the_user_name_is_the_subject(directory: Directory) -> None:
    added = await add(directory, DirectoryEntry(user_name="bob@example.com"))
    assert directory.user(added.user.id).subject == "bob@example.com"


async def test_a_person_who_signed_in_before_keeps_their_user(directory: Directory) -> None:
    directory.state.users[USER] = a_user(role=Role.ADMIN)
    added = await add(directory)
    assert (added.user.id, directory.user(USER).role) == (USER, Role.ADMIN)


async def test_a_person_who_was_removed_is_admitted_again_without_the_role_of_before(directory: Directory) -> None:
    directory.state.users[USER] = a_user(role=Role.ADMIN, role_fixed=True).removed()
    directory.put_abroad()
    added = await add(directory, active=False)
    assert [directory.user(each).status for each in (USER, ABROAD)] == [UserStatus.DEACTIVATED] * 2
    assert not added.active
    await directory.provisioned.remove(directory.provider, USER)
    await add(directory)
    assert [directory.user(each).status for each in (USER, ABROAD)] == [UserStatus.ACTIVE, UserStatus.DEACTIVATED]
    user = directory.user(USER)
    assert (user.name, user.role, user.role_fixed) == ("Ann", Role.VIEWER, False)


@pytest.mark.parametrize("entry", [ANN, DirectoryEntry(user_name="ANN@example.com", external_id="another")])
async def test_a_user_name_and_a_person_are_managed_once(directory: Directory, entry: DirectoryEntry) -> None:
    await add(directory)
    with refused("user_name_taken"):
        await add(directory, entry)
