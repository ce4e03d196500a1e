"""The bytes of a source, part by part."""

from collections.abc import AsyncIterator

from application.sources.ports import SourceStore
from domain.sources.source import Source


async def parts_of(sources: SourceStore, source: Source) -> AsyncIterator[bytes]:
    """The parts in order. They end early if the source is deleted meanwhile."""
    position = 0
    while (part := await sources.part(source.organization_id, source.id, position)) is not None:
        yield part
        position += 1
