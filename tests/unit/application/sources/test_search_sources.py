"""SearchSources: which files are searched, for which words, and in which order pieces come."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.sources.ports import SourceSearch, SourceStore
from application.sources.search_sources import CANDIDATES, SearchSources, SearchSourcesCommand, SourcesSearched
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from domain.sources.ranking import FoundChunk
from domain.sources.source import SourceChunk
from tests.builders import ORG, OTHER_ORG, THREAD, a_thread_id
from tests.doubles.sources import InMemorySourceSearch, InMemorySourceStore
from tests.doubles.state import InMemoryState
from tests.doubles.stored_source import StoredSource
from tests.refusals import refused, storage_away
from tests.unit.application.sources.files import a_state_with, a_stored_source

NOTES = a_stored_source(1, "The harvest of apples began.", "Nothing about fruit.", name="notes.txt")
REPORT = a_stored_source(2, "Apples and pears, apples and plums.", name="report.txt")
ELSEWHERE = a_stored_source(3, "Apples of another thread.", thread_id=a_thread_id(2))
STATE = a_state_with(NOTES, REPORT, ELSEWHERE)


@pytest.fixture
def search(mocker: MockerFixture) -> MockType:
    """A search that finds nothing."""
    search: MockType = mocker.create_autospec(SourceSearch, instance=True)
    search.find.return_value = ()
    return search


async def searched(
    question: str = "apples",
    *,
    source: str | None = None,
    organization_id: OrganizationId = ORG,
    state: InMemoryState = STATE,
    sources: SourceStore | None = None,
    search: SourceSearch | None = None,
) -> SourcesSearched:
    """Search the in-memory tables, unless other ports are given."""
    searching = SearchSources(
        sources=sources or InMemorySourceStore(state), search=search or InMemorySourceSearch(state)
    )
    command = SearchSourcesCommand(
        organization_id=organization_id, thread_id=THREAD, question=question, source=source, max_results=5
    )
    return await searching.execute(command)


def names(result: SourcesSearched) -> list[str]:
    return [found.source_name for found in result.found]


def a_found(source: StoredSource, text: str) -> FoundChunk:
    chunk = SourceChunk(text=text, start_line=1, end_line=1)
    return FoundChunk(source_id=source.source.id, source_name=source.source.name, position=0, chunk=chunk)


@pytest.mark.requirement("D4")
async def test_pieces_with_the_words_of_a_question_are_found_best_first() -> None:
    result = await searched("Where are the apples?")

    assert [found.chunk.text for found in result.found] == [
        "Apples and pears, apples and plums.",
        "The harvest of apples began.",
    ]
    assert result.searched == (REPORT.source, NOTES.source)


@pytest.mark.requirement("C6", "D4")
async def test_only_sources_of_the_thread_and_the_organization_are_searched() -> None:
    assert ELSEWHERE.source not in (await searched()).searched
    assert await searched(organization_id=OTHER_ORG) == SourcesSearched(found=(), searched=())


@pytest.mark.requirement("D4")
@pytest.mark.parametrize("source", ["notes.txt", NOTES.source.id], ids=["name", "id"])
async def test_a_source_that_is_named_is_searched_alone(source: str) -> None:
    result = await searched(source=source)

    assert names(result) == ["notes.txt"]
    assert result.searched == (NOTES.source,)


@pytest.mark.requirement("D4")
async def test_all_sources_with_the_name_are_searched() -> None:
    twin = a_stored_source(4, "Apples again.", name="notes.txt")

    result = await searched(source="notes.txt", state=a_state_with(NOTES, REPORT, twin))

    assert result.searched == (twin.source, NOTES.source)


@pytest.mark.requirement("D4")
async def test_a_source_that_is_not_there_is_answered_with_the_names_of_those_that_are(search: MockType) -> None:
    with pytest.raises(ServiceError) as caught:
        await searched(source="other.txt", search=search)

    assert (caught.value.code, caught.value.kind) == ("source_not_found", ErrorKind.NOT_FOUND)
    assert "'report.txt', 'notes.txt'" in caught.value.detail
    search.find.assert_not_awaited()


@pytest.mark.requirement("D4")
async def test_nothing_in_a_question_is_an_operator() -> None:
    assert names(await searched('"apples" AND NOT (pears) *')) == ["report.txt", "notes.txt"]


@pytest.mark.requirement("D4")
async def test_the_order_does_not_depend_on_the_order_in_which_a_database_finds_pieces(search: MockType) -> None:
    equally_good = (a_found(NOTES, "apples"), a_found(REPORT, "apples"))

    for candidates in (equally_good, equally_good[::-1]):
        search.find.return_value = candidates
        assert names(await searched(search=search)) == ["notes.txt", "report.txt"]


async def test_the_number_of_results_and_of_pieces_that_are_compared_is_bounded(search: MockType) -> None:
    search.find.return_value = tuple(a_found(NOTES, f"apples {number}") for number in range(9))

    result = await searched(search=search)

    assert len(result.found) == 5
    assert search.find.await_args.kwargs == {"source_ids": None, "limit": CANDIDATES}


@pytest.mark.parametrize(
    ("question", "state"),
    [("?!", STATE), ("apples", a_state_with(a_stored_source(1)))],
    ids=["no words", "no pieces"],
)
async def test_without_words_or_without_pieces_nothing_is_looked_for(
    search: MockType, question: str, state: InMemoryState
) -> None:
    assert (await searched(question, state=state, search=search)).found == ()

    search.find.assert_not_awaited()


@pytest.mark.parametrize("failing", ["sources", "search"])
async def test_a_storage_failure_is_not_an_empty_result(mocker: MockerFixture, search: MockType, failing: str) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)
    sources.of_thread.return_value = (NOTES.source,)
    (sources.of_thread if failing == "sources" else search.find).side_effect = storage_away()

    with refused("storage_unavailable"):
        await searched(sources=sources, search=search)
