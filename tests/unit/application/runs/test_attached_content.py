"""Sources of the thread in the input of a run."""

import base64

import pytest

from application.runs.attached_content import attached_content
from domain.ids import ThreadId
from domain.threads.attachments import MAX_ATTACHED_BYTES, AttachedSource
from domain.threads.message import FileContent, TextContent, UserContent
from tests.builders import ORG, THREAD, a_thread_id
from tests.doubles.sources import InMemorySourceStore
from tests.doubles.state import InMemoryState
from tests.doubles.stored_source import StoredSource
from tests.refusals import refused
from tests.unit.application.sources.files import a_source, a_stored_source

pytestmark = pytest.mark.requirement("H5")
QUESTION = TextContent(text="What is in it?")


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
