"""Sources of the thread in the input of a run."""

import base64
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.runs.attached_content import SourceFiles, attached_content
from domain.ids import ThreadId
from domain.threads.attachments import MAX_ATTACHED_BYTES, MAX_ATTACHMENTS, AttachedSource
from domain.threads.message import FileContent, ImageContent, TextContent, UserContent
from tests.builders import ORG, THREAD, a_thread, a_thread_id
from tests.doubles.sources import InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.stored_source import StoredSource
from tests.refusals import refused
from tests.unit.application.sources.files import a_source, a_stored_source

pytestmark = pytest.mark.requirement("H5")
QUESTION = TextContent(text="What is in it?")
PICTURE = ImageContent(media_type="image/png", data="aGk=")


async def content_with(stored: StoredSource, *, thread_id: ThreadId | None = THREAD) -> tuple[UserContent, ...]:
    state = InMemoryState()
    state.sources[stored.source.id] = stored
    given = (QUESTION, AttachedSource(source_id=stored.source.id))
    return await attached_content(InMemorySourceStore(state), ORG, thread_id, given)


async def test_a_source_becomes_a_file_with_all_its_bytes() -> None:
    data = base64.b64encode(b"%PDF-1.7").decode()
    report = FileContent(media_type="application/pdf", name="report.pdf", data=data)
    assert await content_with(a_stored_source(name="report.pdf", parts=(b"%PDF", b"-1.7"))) == (QUESTION, report)


@pytest.mark.parametrize("thread_id", [a_thread_id(2), None])
async def test_a_source_of_another_thread_is_not_found(thread_id: ThreadId | None) -> None:
    with refused("source_not_found"):
        await content_with(a_stored_source(parts=(b"a",)), thread_id=thread_id)


async def test_a_source_that_is_larger_than_a_message_is_refused_unread() -> None:
    large = StoredSource(source=a_source(size=MAX_ATTACHED_BYTES + 1), finished=True)
    with refused("attachments_too_large"):
        await content_with(large)


async def test_sources_and_files_are_bounded_in_sum() -> None:
    state, one = InMemoryState(), a_stored_source(parts=(b"a",))
    state.sources[one.source.id] = one
    full = FileContent(media_type="application/zip", data=base64.b64encode(bytes(MAX_ATTACHED_BYTES)).decode())
    with refused("attachments_too_large"):
        await attached_content(InMemorySourceStore(state), ORG, THREAD, (full, AttachedSource(source_id=one.source.id)))


async def test_too_many_sources_and_files_are_refused_before_a_source_is_read(mocker: MockerFixture) -> None:
    sources = mocker.create_autospec(SourceFiles, instance=True)
    attached = AttachedSource(source_id=a_source().id)
    with refused("attachments_too_large"):
        await attached_content(sources, ORG, THREAD, (PICTURE, *[attached] * MAX_ATTACHMENTS))
    assert not sources.mock_calls


async def test_a_stored_input_without_sources_is_taken_as_it_is() -> None:
    stored = (PICTURE,) * (MAX_ATTACHMENTS + 1)
    assert await attached_content(InMemorySourceStore(InMemoryState()), ORG, THREAD, stored) == stored


@pytest.mark.requirement("P2")
async def test_sources_of_the_thread_of_a_team_are_not_read_for_others() -> None:
    state, one = InMemoryState(), a_stored_source(parts=(b"a",))
    state.sources[one.source.id] = one
    state.threads[THREAD] = StoredThread(thread=replace(a_thread(), team="finance"))
    given, sources = (AttachedSource(source_id=one.source.id),), InMemorySourceStore(state)
    with refused("source_not_found"):
        await attached_content(sources, ORG, THREAD, given, teams=frozenset({"others"}))
    assert await attached_content(sources, ORG, THREAD, given, teams=frozenset({"finance"}))
