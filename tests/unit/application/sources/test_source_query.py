"""source_query, from the question of a model to the passages it is given."""

from collections.abc import AsyncIterator

import pytest

from application.sources.search_sources import SearchSources
from application.sources.store_source import StoreSource, StoreSourceCommand
from application.tools.ports import NativeToolContext, NativeToolError
from domain.audit.event import AuditAction
from domain.ids import SourceId, ThreadId, ToolCallId
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from infrastructure.native_tools.source_query import SOURCE_QUERY, SourceQueryTool
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import ORG, OTHER_ORG, RUN, THREAD, a_thread, a_thread_id, an_audit_event, numbered
from tests.doubles.plain_text_extractor import PlainTextExtractor
from tests.doubles.sources import InMemorySourceIntake, InMemorySourceSearch, InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.surroundings import StepClock


class Library:
    """A thread with files, and the tool that searches them."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.state.threads[THREAD] = StoredThread(thread=a_thread())
        sources = InMemorySourceStore(self.state)
        self.store = StoreSource(
            intake=InMemorySourceIntake(self.state),
            sources=sources,
            extractor=PlainTextExtractor(),
            clock=StepClock(),
        )
        search = SearchSources(sources=sources, search=InMemorySourceSearch(self.state))
        self.tool = SourceQueryTool(search_sources=search)
        self._count = 0

    async def add(self, name: str, text: str | bytes) -> str:
        self._count += 1
        number = self._count

        async def once() -> AsyncIterator[bytes]:
            yield text.encode() if isinstance(text, str) else text

        source = await self.store.execute(
            StoreSourceCommand(
                source_id=SourceId(numbered("src", number)),
                organization_id=ORG,
                thread_id=THREAD,
                name=name,
                content=once(),
                audit=lambda source: an_audit_event(number, action=AuditAction.SOURCE_ADDED, resource=source.id),
            )
        )
        return source.id

    async def ask(self, thread_id: ThreadId = THREAD, organization: str = ORG, **arguments: object) -> JsonObject:
        given: JsonObject = arguments  # type: ignore[assignment]  # keyword arguments of a test
        assert JsonSchemaValidator().violations(SOURCE_QUERY.parameters, given) == ()
        context = NativeToolContext(
            organization_id=ORG if organization == ORG else OTHER_ORG,
            thread_id=thread_id,
            run_id=RUN,
            tool_call_id=ToolCallId("call_1"),
            timeout_s=5.0,
        )
        value = (await self.tool.run(given, context)).value
        assert isinstance(value, dict)
        return value


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.mark.requirement("A3", "D4")
def test_it_is_an_executable_tool_that_only_reads() -> None:
    assert (SOURCE_QUERY.name, SOURCE_QUERY.type) == ("source_query", ToolType.SOURCE_QUERY)
    assert not SOURCE_QUERY.is_displayable
    assert SOURCE_QUERY.repeatable


@pytest.mark.requirement("A9", "D4")
@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": 1}, {"query": "a", "max_results": 0}, {"query": "a", "limit": 5}]
)
def test_wrong_arguments_are_caught_before_it_runs(arguments: JsonObject) -> None:
    assert JsonSchemaValidator().problem_with(SOURCE_QUERY.parameters) is None
    assert JsonSchemaValidator().violations(SOURCE_QUERY.parameters, arguments) != ()


@pytest.mark.requirement("D4")
async def test_a_passage_comes_with_its_file_and_its_lines(library: Library) -> None:
    handbook = await library.add("handbook.md", "# Travel\n\nRefunds are paid\nwithin ten days.\n")
    report = await library.add("report.pdf", b"%PDF-cover\frefunds of March")
    await library.add("other.txt", "nothing of the kind")

    answer = await library.ask(query="refund")

    assert answer["results"] == [
        {
            "source_id": report,
            "file": "report.pdf",
            "start_line": 1,
            "end_line": 1,
            "page": 2,
            "text": "refunds of March",
        },
        {
            "source_id": handbook,
            "file": "handbook.md",
            "start_line": 1,
            "end_line": 4,
            "heading": "Travel",
            "text": "# Travel\n\nRefunds are paid\nwithin ten days.",
        },
    ]
    assert "note" not in answer


async def test_as_many_passages_are_given_as_are_asked_for(library: Library) -> None:
    for number in range(12):
        await library.add(f"{number}.txt", f"walrus {number}")
    for arguments, count in (({}, 5), ({"max_results": 2}, 2), ({"max_results": 2.0}, 2), ({"max_results": 20}, 12)):
        results = (await library.ask(query="walrus", **arguments))["results"]
        assert isinstance(results, list)
        assert len(results) == count


async def test_one_file_is_searched_by_its_name_or_its_id(library: Library) -> None:
    await library.add("a.txt", "walrus in a")
    wanted = await library.add("b.txt", "walrus in b")
    for source in ("b.txt", wanted):
        results = (await library.ask(query="walrus", source=source))["results"]
        assert [entry["file"] for entry in results] == ["b.txt"]  # type: ignore[union-attr, index, call-overload]


@pytest.mark.requirement("A5")
async def test_an_unknown_file_is_a_failure_that_names_the_files_there_are(library: Library) -> None:
    await library.add("a.txt", "walrus")
    with pytest.raises(NativeToolError) as failed:
        await library.ask(query="walrus", source="b.txt")
    assert failed.value.code == "source_not_found"
    assert "'a.txt'" in failed.value.message


async def test_when_nothing_is_found_the_model_learns_where_it_was_looked_for(library: Library) -> None:
    assert await library.ask(query="walrus") == {"results": [], "note": "This conversation has no files."}
    await library.add("a.txt", "nothing")
    await library.add("b.pdf", b"%PDF-damaged")
    await library.add("c.bin", b"\0\1")
    for question in ("walrus", "?!"):
        answer = await library.ask(query=question)
        assert answer["results"] == []
        assert answer["note"] == (
            "Nothing was found in: c.bin (not searchable), b.pdf (The document is damaged.), a.txt."
        )


@pytest.mark.requirement("C6", "D4")
async def test_nothing_of_other_threads_and_organizations_is_found(library: Library) -> None:
    source = await library.add("a.txt", "walrus")
    library.state.threads[a_thread_id(2)] = StoredThread(thread=a_thread(a_thread_id(2)))
    for place in ({"thread_id": a_thread_id(2)}, {"organization": OTHER_ORG}):
        assert (await library.ask(query="walrus", **place))["results"] == []
        with pytest.raises(NativeToolError):
            await library.ask(query="walrus", source=source, **place)
