"""ListSecrets: names and dates for admins, values for no one."""

import pytest
from pytest_mock import MockerFixture

from application.secrets.ports import SecretStore
from application.secrets.queries import ListSecrets
from application.system.pages import PageRequest
from domain.identity.role import Role
from domain.secrets.secret import Secret
from tests.builders import ORG, after
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

OLD, NEW = (
    Secret(organization_id=ORG, name=name, created_at=after(at), updated_at=after(9))
    for name, at in (("Z_OLD", 1), ("A_NEW", 2))
)


def stored_secrets() -> InMemorySecretStore:
    state = InMemoryState()
    state.secrets = {(ORG, secret.name): (secret, "s3cret-value") for secret in (OLD, NEW)}
    return InMemorySecretStore(state)


@pytest.mark.requirement("C7")
async def test_an_admin_sees_names_and_dates_newest_first_and_no_values() -> None:
    page = await ListSecrets(secrets=stored_secrets()).execute(principal=a_principal(), page=PageRequest(limit=10))

    assert page.items == (NEW, OLD)
    assert "s3cret-value" not in repr(page)


async def test_secrets_are_listed_page_by_page() -> None:
    list_secrets = ListSecrets(secrets=stored_secrets())

    first = await list_secrets.execute(principal=a_principal(), page=PageRequest(limit=1))
    rest = PageRequest(limit=1, cursor=first.next_cursor)
    last = await list_secrets.execute(principal=a_principal(), page=rest)

    assert (first.items, last.items, last.next_cursor) == ((NEW,), (OLD,), None)


@pytest.mark.requirement("C6", "C7")
async def test_secrets_of_another_organization_are_not_listed() -> None:
    assert (
        await ListSecrets(secrets=stored_secrets()).execute(principal=a_stranger(), page=PageRequest(limit=10))
    ).items == ()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_lists_secrets(mocker: MockerFixture, role: Role) -> None:
    secrets = mocker.create_autospec(SecretStore, instance=True)

    with refused("role_insufficient"):
        await ListSecrets(secrets=secrets).execute(principal=a_principal(role), page=PageRequest(limit=10))

    secrets.page.assert_not_awaited()


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    secrets = mocker.create_autospec(SecretStore, instance=True)
    secrets.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListSecrets(secrets=secrets).execute(principal=a_principal(), page=PageRequest(limit=10))
