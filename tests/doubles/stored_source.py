"""A source as the in-memory tables hold it."""

from dataclasses import dataclass, field

from domain.sources.source import IndexedChunk, Source


@dataclass(slots=True, kw_only=True)
class StoredSource:
    """A source with its bytes and pieces by position; nobody sees it before it is `finished`."""

    source: Source
    finished: bool = False
    parts: dict[int, bytes] = field(default_factory=dict)
    chunks: dict[int, IndexedChunk] = field(default_factory=dict)
