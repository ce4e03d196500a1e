"""Sources and their pieces to rows and back."""

from collections.abc import Sequence

from domain.ids import OrganizationId, RunId, SourceId, ThreadId
from domain.sources.ranking import FoundChunk
from domain.sources.source import IndexedChunk, Source, SourceChunk, SourceKind
from infrastructure.persistence.columns.paging import AnyRow


def source_row(source: Source, *, finished: bool) -> dict[str, object]:
    """For an insert or an update."""
    return {
        "id": source.id,
        "organization_id": source.organization_id,
        "thread_id": source.thread_id,
        "name": source.name,
        "kind": source.kind.value,
        "size": source.size,
        "digest": source.digest,
        "chunks": source.chunks,
        "problem": source.problem,
        "run_id": source.run_id,
        "finished": finished,
        "created_at": source.created_at,
    }


def source_of(row: AnyRow) -> Source:
    """From a row of `source`."""
    return Source(
        id=SourceId(row.id),
        organization_id=OrganizationId(row.organization_id),
        thread_id=ThreadId(row.thread_id),
        name=row.name,
        kind=SourceKind(row.kind),
        size=row.size,
        digest=row.digest,
        chunks=row.chunks,
        problem=row.problem,
        run_id=None if row.run_id is None else RunId(row.run_id),
        created_at=row.created_at,
    )


def chunk_rows(source: Source, first: int, chunks: Sequence[IndexedChunk]) -> list[dict[str, object]]:
    """For an insert of pieces with the positions from `first` on."""
    return [
        {
            "organization_id": source.organization_id,
            "thread_id": source.thread_id,
            "source_id": source.id,
            "position": position,
            "start_line": indexed.chunk.start_line,
            "end_line": indexed.chunk.end_line,
            "page": indexed.chunk.page,
            "heading": indexed.chunk.heading,
            "text": indexed.chunk.text,
            "words": indexed.words,
        }
        for position, indexed in enumerate(chunks, start=first)
    ]


def found_chunk_of(row: AnyRow) -> FoundChunk:
    """From a row of a search."""
    return FoundChunk(
        source_id=SourceId(row.source_id),
        source_name=row.source_name,
        position=row.position,
        chunk=SourceChunk(
            text=row.text, start_line=row.start_line, end_line=row.end_line, page=row.page, heading=row.heading
        ),
    )
