"""ReadSource: who reads the bytes of a file, and that they come part by part."""

import pytest
from pytest_mock import MockerFixture

from application.sources.ports import SourceStore
from application.sources.queries import ReadSource
from domain.identity.role import Role
from tests.builders import ORG
from tests.doubles.sources import InMemorySourceStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.sources.files import a_source, a_state_with, a_stored_source

PARTS = (b"hello ", b"world")
SOURCE = a_source(size=11)


def stored_source(*, finished: bool = True) -> InMemorySourceStore:
    return InMemorySourceStore(a_state_with(a_stored_source(parts=PARTS, finished=finished)))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_the_bytes_of_a_source_in_order(role: Role) -> None:
    read = await ReadSource(sources=stored_source()).execute(principal=a_principal(role), source_id=SOURCE.id)

    assert read.source == SOURCE
    assert [part async for part in read.content] == list(PARTS)


async def test_a_part_is_read_when_it_is_asked_for_and_none_before(mocker: MockerFixture) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)
    sources.get.return_value, sources.part.side_effect = SOURCE, [*PARTS, None]
    read = await ReadSource(sources=sources).execute(principal=a_principal(), source_id=SOURCE.id)
    sources.part.assert_not_awaited()

    assert await anext(read.content) == PARTS[0]

    sources.part.assert_awaited_once_with(ORG, SOURCE.id, 0)


@pytest.mark.requirement("C6")
async def test_a_source_of_another_organization_is_not_found() -> None:
    with refused("source_not_found"):
        await ReadSource(sources=stored_source()).execute(principal=a_stranger(), source_id=SOURCE.id)


async def test_a_source_that_is_still_coming_in_is_not_read() -> None:
    with refused("source_not_found"):
        await ReadSource(sources=stored_source(finished=False)).execute(principal=a_principal(), source_id=SOURCE.id)


async def test_a_storage_failure_is_not_taken_for_a_missing_source(mocker: MockerFixture) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)
    sources.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ReadSource(sources=sources).execute(principal=a_principal(), source_id=SOURCE.id)


async def test_a_storage_failure_between_parts_is_not_taken_for_the_end_of_the_file(mocker: MockerFixture) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)
    sources.get.return_value, sources.part.side_effect = SOURCE, [PARTS[0], storage_away()]
    read = await ReadSource(sources=sources).execute(principal=a_principal(), source_id=SOURCE.id)

    with refused("storage_unavailable"):
        [part async for part in read.content]
