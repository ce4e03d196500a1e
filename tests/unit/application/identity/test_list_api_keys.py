"""ListApiKeys: who sees which keys, and that their last uses are known."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.identity.key_uses import KeyUses
from application.identity.ports import IdentityStore
from application.identity.queries import ListApiKeys
from domain.identity.role import Role
from domain.ids import ApiKeyId
from tests.builders import KEY, OTHER_ORG, START, a_key, after
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

OLD = a_key()
REVOKED = a_key(ApiKeyId("key_revoked"), created_at=after(1), revoked_at=after(2))
EXPIRED = replace(a_key(ApiKeyId("key_expired"), created_at=after(2)), expires_at=START)
THEIRS = a_key(ApiKeyId("key_theirs"), organization_id=OTHER_ORG)


@pytest.fixture
def identities() -> InMemoryIdentityStore:
    state = InMemoryState()
    state.keys = {key.id: key for key in (OLD, REVOKED, EXPIRED, THEIRS)}
    return InMemoryIdentityStore(state)


@pytest.mark.requirement("C6")
async def test_an_admin_sees_all_keys_of_the_organization_newest_first(identities: InMemoryIdentityStore) -> None:
    list_keys = ListApiKeys(identities=identities, uses=KeyUses(identities=identities))

    page = await list_keys.execute(principal=a_principal())

    assert page.items == (EXPIRED, REVOKED, OLD)


@pytest.mark.requirement("C6")
async def test_keys_are_listed_with_uses_that_were_only_noted_and_these_are_stored(
    identities: InMemoryIdentityStore,
) -> None:
    uses = KeyUses(identities=identities)
    uses.note(KEY, after(60))

    page = await ListApiKeys(identities=identities, uses=uses).execute(principal=a_principal())

    assert [key.last_used_at for key in page.items] == [None, None, after(60)]
    stored = await identities.key_by_hash(OLD.token_hash)
    assert stored is not None
    assert stored.last_used_at == after(60)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_lists_keys(mocker: MockerFixture, role: Role) -> None:
    store = mocker.create_autospec(IdentityStore, instance=True)
    uses = mocker.create_autospec(KeyUses, instance=True)

    with refused("role_insufficient"):
        await ListApiKeys(identities=store, uses=uses).execute(principal=a_principal(role))

    uses.store.assert_not_awaited()
    store.keys.assert_not_awaited()


async def test_keys_are_not_listed_without_the_uses_that_could_not_be_stored(mocker: MockerFixture) -> None:
    store = mocker.create_autospec(IdentityStore, instance=True)
    uses = mocker.create_autospec(KeyUses, instance=True)
    uses.store.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListApiKeys(identities=store, uses=uses).execute(principal=a_principal())

    store.keys.assert_not_awaited()


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    store = mocker.create_autospec(IdentityStore, instance=True)
    store.keys.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListApiKeys(identities=store, uses=KeyUses(identities=store)).execute(principal=a_principal())
