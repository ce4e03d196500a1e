"""DeleteIdentityProvider: who deletes identity providers, and that tokens of their people end."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.delete_identity_provider import DeleteIdentityProvider, DeleteIdentityProviderCommand
from application.identity.ports import IdentityProviderStore
from application.identity.token_cache import TokenCache
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.role import Role
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import PROVIDER, a_provider
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

COMMAND = DeleteIdentityProviderCommand(principal=a_principal(), provider="company")


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.identity_providers[PROVIDER] = a_provider()
        self.cache: MockType = mocker.create_autospec(TokenCache, instance=True)
        self.providers: IdentityProviderStore = InMemoryIdentityProviderStore(self.state)

    async def delete(self, command: DeleteIdentityProviderCommand = COMMAND) -> None:
        deleting = DeleteIdentityProvider(
            providers=self.providers, cache=self.cache, clock=FixedClock(), ids=SequentialIds()
        )
        await deleting.execute(command)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("P1")
async def test_a_deleted_provider_is_forgotten_with_the_tokens_of_its_people(ports: Ports) -> None:
    await ports.delete()
    assert ports.state.identity_providers == {}
    ports.cache.forget_all.assert_called_once_with()
    assert [entry.action for entry in ports.state.audit.values()] == [AuditAction.IDENTITY_PROVIDER_DELETED]


async def test_tokens_are_checked_again_even_if_it_is_unknown_whether_it_was_deleted(
    ports: Ports, mocker: MockerFixture
) -> None:
    failing: MockType = mocker.create_autospec(IdentityProviderStore, instance=True)
    failing.all.return_value = (a_provider(),)
    failing.delete.side_effect = storage_away()
    ports.providers = failing
    with pytest.raises(ServiceError):
        await ports.delete()
    ports.cache.forget_all.assert_called_once_with()


@pytest.mark.requirement("P1")
async def test_others_do_not_delete_it(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.delete(replace(COMMAND, principal=a_principal(Role.OPERATOR)))
    with refused("identity_provider_not_found"):
        await ports.delete(replace(COMMAND, principal=a_stranger()))
    ports.state.identity_providers[PROVIDER] = a_provider(installation=True)
    with refused("platform_key_required"):
        await ports.delete()
    assert PROVIDER in ports.state.identity_providers
