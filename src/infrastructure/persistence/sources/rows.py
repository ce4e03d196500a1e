"""Sources and their chunks to rows and back."""

from collections.abc import Sequence

from domain.ids import SourceId
from domain.sources.ranking import FoundChunk
from domain.sources.source import IndexedChunk, Source, SourceChunk
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow

_source = row_fields(Source)
_chunk = row_fields(SourceChunk)


def source_row(source: Source, *, finished: bool) -> dict[str, object]:
    return {**_source.write(source), "finished": finished}


def source_of(row: AnyRow) -> Source:
    return _source.of_row(row)


def chunk_rows(source: Source, first: int, chunks: Sequence[IndexedChunk]) -> list[dict[str, object]]:
    """Rows of chunks with positions from `first` on."""
    return [
        {
            "organization_id": source.organization_id,
            "thread_id": source.thread_id,
            "source_id": source.id,
            "position": position,
            **_chunk.write(indexed.chunk),
            "words": indexed.words,
        }
        for position, indexed in enumerate(chunks, start=first)
    ]


def found_chunk_of(row: AnyRow) -> FoundChunk:
    return FoundChunk(
        source_id=SourceId(row.source_id),
        source_name=row.source_name,
        position=row.position,
        chunk=_chunk.of_row(row),
    )
