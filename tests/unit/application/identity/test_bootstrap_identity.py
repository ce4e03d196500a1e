"""BootstrapIdentity: what the first start creates, and that a start that dies in between locks no
one out."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.bootstrap_identity import BootstrapIdentity, BootstrappedIdentity
from application.identity.ports import FirstKey, IdentityStore
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from tests.builders import ORG, an_organization
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away

UNUSABLE = ServiceError("home_unusable", ErrorKind.UNAVAILABLE, "HOME cannot be written.")


class Ports:
    """An empty database, and a place for the first key that has no draft."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.identities: IdentityStore = InMemoryIdentityStore(self.state)
        self.first_key: MockType = mocker.create_autospec(FirstKey, instance=True)
        self.first_key.draft.side_effect = lambda fresh: fresh
        self._ids = SequentialIds()

    async def bootstrap(self) -> BootstrappedIdentity | None:
        bootstrapping = BootstrapIdentity(
            identities=self.identities, first_key=self.first_key, clock=FixedClock(), ids=self._ids
        )
        return await bootstrapping.execute()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C6")
async def test_the_first_start_creates_the_default_organization_and_a_platform_admin_key(ports: Ports) -> None:
    created = await ports.bootstrap()

    assert created is not None
    assert created.organization.name == "default"
    assert (created.key.organization_id, created.key.role, created.key.platform) == (
        created.organization.id,
        Role.ADMIN,
        True,
    )
    assert ports.state.organizations == {created.organization.id: created.organization}
    assert ports.state.keys == {created.key.id: created.key}


@pytest.mark.requirement("C6")
async def test_only_a_hash_of_the_token_is_stored_and_no_repr_shows_the_token(ports: Ports) -> None:
    created = await ports.bootstrap()

    assert created is not None
    assert created.key.token_hash == hash_token(created.token)
    assert created.token not in repr(created)
    assert created.token not in repr(ports.state.keys)


async def test_the_token_is_drafted_before_its_hash_is_stored_and_kept_after(
    ports: Ports, mocker: MockerFixture
) -> None:
    order = mocker.MagicMock()
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.bootstrap.return_value = True
    ports.identities = identities
    order.attach_mock(ports.first_key, "first_key")
    order.attach_mock(identities, "identities")

    await ports.bootstrap()

    assert [call[0] for call in order.mock_calls] == ["first_key.draft", "identities.bootstrap", "first_key.keep"]


async def test_a_later_start_changes_nothing_and_discards_its_draft(ports: Ports) -> None:
    ports.state.organizations[ORG] = an_organization()

    assert await ports.bootstrap() is None

    assert list(ports.state.organizations) == [ORG]
    assert not ports.state.keys
    ports.first_key.discard.assert_called_once_with()
    ports.first_key.keep.assert_not_called()


@pytest.mark.requirement("C6")
async def test_the_draft_of_a_start_that_died_before_its_key_was_stored_is_used(ports: Ports) -> None:
    ports.first_key.draft.side_effect = lambda fresh: "dgm_drafted"

    created = await ports.bootstrap()

    assert created is not None
    assert (created.token, created.key.token_hash) == ("dgm_drafted", hash_token("dgm_drafted"))


@pytest.mark.requirement("C6")
async def test_the_draft_of_a_start_that_died_after_its_key_was_stored_is_kept(ports: Ports) -> None:
    ports.first_key.keep.side_effect = [UNUSABLE, None]
    ports.first_key.draft.side_effect = lambda fresh: "dgm_drafted"
    with refused("home_unusable"):
        await ports.bootstrap()
    stored = dict(ports.state.keys)

    assert await ports.bootstrap() is None

    assert ports.first_key.keep.call_count == 2
    ports.first_key.discard.assert_not_called()
    assert ports.state.keys == stored


async def test_nothing_is_stored_when_the_token_cannot_be_drafted(ports: Ports) -> None:
    ports.first_key.draft.side_effect = UNUSABLE

    with refused("home_unusable"):
        await ports.bootstrap()

    assert not ports.state.organizations
    assert not ports.state.keys


async def test_the_draft_stays_when_the_database_cannot_be_reached(ports: Ports, mocker: MockerFixture) -> None:
    ports.identities = mocker.create_autospec(IdentityStore, instance=True)
    ports.identities.bootstrap.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.bootstrap()

    ports.first_key.discard.assert_not_called()
    ports.first_key.keep.assert_not_called()
