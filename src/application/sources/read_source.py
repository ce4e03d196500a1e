"""ReadSource: read the bytes of a file of a thread."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from application.sources.ports import SourceStore
from application.sources.source_content import parts_of
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import SourceId
from domain.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSourceCommand:
    principal: Principal
    source_id: SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContent:
    """A source, and its bytes as a stream."""

    source: Source
    content: AsyncIterator[bytes]


class ReadSource:
    """Any role may read. At most one part is in memory at a time. Raises: ServiceError
    source_not_found."""

    def __init__(self, *, sources: SourceStore) -> None:
        self._sources = sources

    async def execute(self, command: ReadSourceCommand) -> SourceContent:
        source = await self._sources.get(command.principal.organization_id, command.source_id)
        if source is None:
            raise not_found("source", command.source_id)
        return SourceContent(source=source, content=parts_of(self._sources, source))
