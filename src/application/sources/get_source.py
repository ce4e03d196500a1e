"""GetSource: read the metadata of a file of a thread."""

from dataclasses import dataclass

from application.sources.ports import SourceStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import SourceId
from domain.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSourceCommand:
    principal: Principal
    source_id: SourceId


class GetSource:
    """Any role may read. Raises: ServiceError source_not_found."""

    def __init__(self, *, sources: SourceStore) -> None:
        self._sources = sources

    async def execute(self, command: GetSourceCommand) -> Source:
        """The source without its bytes."""
        source = await self._sources.get(command.principal.organization_id, command.source_id)
        if source is None:
            raise not_found("source", command.source_id)
        return source
