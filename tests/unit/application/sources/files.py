"""A file of THREAD with its bytes and pieces, for tests of the slice."""

from domain.ids import SourceId, ThreadId
from domain.sources.source import IndexedChunk, Source, SourceChunk, SourceKind
from domain.sources.words import words_of
from tests.builders import ORG, THREAD, a_thread, after, numbered
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.stored_source import StoredSource


def a_source(
    number: int = 1, *, name: str = "notes.txt", thread_id: ThreadId = THREAD, chunks: int = 0, size: int = 0
) -> Source:
    """Source `number`, added at that many seconds."""
    return Source(
        id=SourceId(numbered("src", number)),
        organization_id=ORG,
        thread_id=thread_id,
        name=name,
        kind=SourceKind.TEXT,
        size=size,
        digest="0" * 64,
        created_at=after(number),
        chunks=chunks,
    )


def a_stored_source(
    number: int = 1,
    *texts: str,
    name: str = "notes.txt",
    parts: tuple[bytes, ...] = (),
    thread_id: ThreadId = THREAD,
    finished: bool = True,
) -> StoredSource:
    """A source whose pieces are these texts and whose bytes are these parts."""
    chunks = [SourceChunk(text=text, start_line=line, end_line=line) for line, text in enumerate(texts, 1)]
    indexed = [IndexedChunk(chunk=chunk, words=" ".join(words_of(chunk.text))) for chunk in chunks]
    size = sum(map(len, parts))
    return StoredSource(
        source=a_source(number, name=name, thread_id=thread_id, chunks=len(texts), size=size),
        finished=finished,
        parts=dict(enumerate(parts)),
        chunks=dict(enumerate(indexed)),
    )


def a_state_with(*sources: StoredSource) -> InMemoryState:
    """In-memory tables that hold THREAD and these sources."""
    state = InMemoryState()
    state.threads[THREAD] = StoredThread(thread=a_thread())
    state.sources = {stored.source.id: stored for stored in sources}
    return state
