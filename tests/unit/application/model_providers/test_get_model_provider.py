"""GetModelProvider: who reads a provider."""

import pytest
from pytest_mock import MockerFixture

from application.model_providers.ports import ModelProviderStore
from application.model_providers.queries import GetModelProvider
from domain.identity.role import Role
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.model_providers.providers import a_provider, stored

PROVIDER, OTHER = a_provider(), a_provider("other")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_a_provider_by_its_name(role: Role) -> None:
    get = GetModelProvider(providers=stored(OTHER, PROVIDER))

    assert await get.execute(principal=a_principal(role), name="acme") == PROVIDER


async def test_an_unknown_provider_is_not_found() -> None:
    with refused("model_provider_not_found"):
        await GetModelProvider(providers=stored(OTHER)).execute(principal=a_principal(), name="acme")


@pytest.mark.requirement("C6", "C7")
async def test_a_provider_of_another_organization_is_not_found() -> None:
    with refused("model_provider_not_found"):
        await GetModelProvider(providers=stored(PROVIDER)).execute(principal=a_stranger(), name="acme")


async def test_a_storage_failure_is_not_taken_for_a_missing_provider(mocker: MockerFixture) -> None:
    providers = mocker.create_autospec(ModelProviderStore, instance=True)
    providers.all.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetModelProvider(providers=providers).execute(principal=a_principal(), name="acme")
