"""How sources come in: in parts, read where that does no harm, visible when complete; broken-off
ones leave nothing."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest

from application.sources.ports import PART_BYTES
from application.sources.store_source import CHUNKS_IN_A_STEP, StoreSource, StoreSourceCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.ids import SourceId
from domain.sources.source import MAX_SOURCE_BYTES, Source, SourceKind
from tests.builders import ORG, THREAD, a_thread, an_audit_event
from tests.doubles.plain_text_extractor import PlainTextExtractor
from tests.doubles.sources import InMemorySourceIntake, InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.surroundings import FixedClock

MIB = 1024 * 1024


class Intake:
    """A thread that takes sources."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.state.threads[THREAD] = StoredThread(thread=a_thread())
        self.sources = InMemorySourceStore(self.state)
        self.clock = FixedClock()
        self.store = StoreSource(
            intake=InMemorySourceIntake(self.state),
            sources=self.sources,
            extractor=PlainTextExtractor(),
            clock=self.clock,
        )

    async def put(self, name: str, content: AsyncIterator[bytes], *, id: str = "src_1") -> Source:
        return await self.store.execute(
            StoreSourceCommand(
                source_id=SourceId(id),
                organization_id=ORG,
                thread_id=THREAD,
                name=name,
                content=content,
                audit=lambda source: an_audit_event(action=AuditAction.SOURCE_ADDED, resource=source.id),
            )
        )


@pytest.fixture
def intake() -> Intake:
    return Intake()


async def pieces(*contents: bytes) -> AsyncIterator[bytes]:
    for content in contents:
        yield content


@pytest.mark.requirement("D4")
async def test_bytes_are_stored_in_parts_of_one_size_however_they_come(intake: Intake) -> None:
    content = bytes(range(256)) * 9_000
    source = await intake.put("a.bin", pieces(*(content[start : start + 777] for start in range(0, len(content), 777))))

    parts = intake.state.sources[source.id].parts
    assert [len(parts[position]) for position in sorted(parts)] == [
        PART_BYTES,
        PART_BYTES,
        len(content) - 2 * PART_BYTES,
    ]
    assert b"".join(parts[position] for position in sorted(parts)) == content
    assert (source.size, source.digest) == (len(content), hashlib.sha256(content).hexdigest())
    assert await intake.sources.get(ORG, source.id) == source


@pytest.mark.requirement("D4")
async def test_one_byte_too_many_ends_the_upload_and_leaves_nothing(intake: Intake) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += MIB
            yield b"\0" * MIB

    with pytest.raises(ServiceError) as refused:
        await intake.put("a.bin", endless())

    assert (refused.value.code, refused.value.kind) == ("source_too_large", ErrorKind.TOO_LARGE)
    assert sent == MAX_SOURCE_BYTES + MIB
    assert intake.state.sources == {}
    assert intake.state.audit == {}


async def test_an_upload_that_breaks_off_leaves_nothing(intake: Intake) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * (2 * MIB)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await intake.put("a.txt", broken())
    assert intake.state.sources == {}


async def test_an_upload_that_is_cancelled_leaves_nothing(intake: Intake) -> None:
    waiting, never = asyncio.Event(), asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"x" * (2 * MIB)
        waiting.set()
        await never.wait()

    upload = asyncio.create_task(intake.put("a.txt", stalled()))
    async with asyncio.timeout(10):
        await waiting.wait()
        assert intake.state.sources != {}
        upload.cancel()
        with pytest.raises(asyncio.CancelledError):
            await upload
    assert intake.state.sources == {}


async def test_a_thread_that_is_deleted_during_the_upload_ends_it(intake: Intake) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"x" * MIB
        intake.state.sources.clear()
        yield b"x" * MIB

    with pytest.raises(ServiceError) as refused:
        await intake.put("a.bin", content())
    assert refused.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.requirement("D4")
async def test_the_text_of_a_long_file_is_stored_piece_by_piece(intake: Intake) -> None:
    lines = "\n\n".join(f"{number} " + "word " * 250 for number in range(CHUNKS_IN_A_STEP * 2 + 5))
    source = await intake.put("long.txt", pieces(lines.encode()))
    stored = intake.state.sources[source.id].chunks
    assert source.chunks == len(stored) == CHUNKS_IN_A_STEP * 2 + 5
    assert [stored[position].chunk.text.split()[0] for position in range(3)] == ["0", "1", "2"]


@pytest.mark.requirement("D4")
@pytest.mark.requirement("D4")
async def test_of_more_lines_than_can_be_searched_the_first_are_and_it_says_so(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("application.sources.store_source.MAX_LINES", 100_000)
    source = await intake.put("many.txt", pieces(b"a\n" * 300_000))
    stored = intake.state.sources[source.id].chunks
    assert source.chunks == len(stored) == CHUNKS_IN_A_STEP
    assert source.problem == f"Only the first {CHUNKS_IN_A_STEP} chunks of the text can be searched."
    assert stored[0].chunk.start_line == 1


async def test_pages_and_main_texts_come_from_the_extractor(intake: Intake) -> None:
    pdf = await intake.put("a.pdf", pieces(b"%PDF-first page\fsecond\npage"), id="src_1")
    html = await intake.put("a.html", pieces(b"# Title\n\nbody"), id="src_2")
    places = [(chunk.chunk.page, chunk.chunk.end_line) for chunk in intake.state.sources[pdf.id].chunks.values()]
    assert places == [(1, 1), (2, 2)]
    assert intake.state.sources[html.id].chunks[0].chunk.heading == "Title"


@pytest.mark.requirement("D4")
async def test_a_document_that_cannot_be_read_is_kept_and_says_why(intake: Intake) -> None:
    source = await intake.put("a.pdf", pieces(b"%PDF-damaged"))
    assert (source.kind, source.chunks, source.problem) == (SourceKind.PDF, 0, "The document is damaged.")
    assert intake.state.sources[source.id].parts[0] == b"%PDF-damaged"
