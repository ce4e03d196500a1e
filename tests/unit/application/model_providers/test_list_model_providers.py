"""ListModelProviders: who sees which providers, in which order."""

import pytest
from pytest_mock import MockerFixture

from application.model_providers.ports import ModelProviderStore
from application.model_providers.queries import ListModelProviders
from application.system.pages import PageRequest
from domain.identity.role import Role
from tests.builders import OTHER_ORG
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.model_providers.providers import a_provider, stored

OLD, NEW = a_provider("z-old", created_at_s=1), a_provider("a-new", created_at_s=2)
THEIRS = a_provider(organization_id=OTHER_ORG)


@pytest.mark.requirement("C6", "C7")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_sees_the_providers_of_its_own_organization_newest_first(role: Role) -> None:
    list_providers = ListModelProviders(providers=stored(OLD, THEIRS, NEW))

    page = await list_providers.execute(principal=a_principal(role))

    assert page.items == (NEW, OLD)


async def test_providers_are_listed_page_by_page() -> None:
    list_providers = ListModelProviders(providers=stored(OLD, NEW))
    first = await list_providers.execute(principal=a_principal(), page=PageRequest(limit=1))
    rest = PageRequest(limit=1, cursor=first.next_cursor)

    last = await list_providers.execute(principal=a_principal(), page=rest)

    assert (first.items, last.items, last.next_cursor) == ((NEW,), (OLD,), None)


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    providers = mocker.create_autospec(ModelProviderStore, instance=True)
    providers.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListModelProviders(providers=providers).execute(principal=a_principal())
