"""GetSource: who reads what is known of a file."""

import pytest
from pytest_mock import MockerFixture

from application.sources.ports import SourceStore
from application.sources.queries import GetSource
from domain.identity.role import Role
from tests.doubles.sources import InMemorySourceStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.sources.files import a_source, a_state_with, a_stored_source

SOURCE = a_source()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_a_source_of_its_organization(role: Role) -> None:
    get = GetSource(sources=InMemorySourceStore(a_state_with(a_stored_source())))

    assert await get.execute(principal=a_principal(role), source_id=SOURCE.id) == SOURCE


async def test_a_source_that_is_still_coming_in_is_not_found() -> None:
    get = GetSource(sources=InMemorySourceStore(a_state_with(a_stored_source(finished=False))))

    with refused("source_not_found"):
        await get.execute(principal=a_principal(), source_id=SOURCE.id)


@pytest.mark.requirement("C6")
async def test_a_source_of_another_organization_is_not_found() -> None:
    get = GetSource(sources=InMemorySourceStore(a_state_with(a_stored_source())))

    with refused("source_not_found"):
        await get.execute(principal=a_stranger(), source_id=SOURCE.id)


async def test_a_storage_failure_is_not_taken_for_a_missing_source(mocker: MockerFixture) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)
    sources.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetSource(sources=sources).execute(principal=a_principal(), source_id=SOURCE.id)
