"""The input of a run, with the bytes of its sources."""

from typing import Protocol

from domain.errors import not_found
from domain.ids import OrganizationId, SourceId, ThreadId
from domain.sources.source import Source
from domain.teams import Teams
from domain.threads.attachments import AttachedSource, attachment, require_few_attachments, require_small
from domain.threads.message import UserContent


class SourceFiles(Protocol):
    """Sources of threads, with their bytes."""

    async def get(self, organization_id: OrganizationId, source_id: SourceId, *, teams: Teams = None) -> Source | None:
        """The source, or None; of threads that teams own, only of those of `teams`."""

    async def part(self, organization_id: OrganizationId, source_id: SourceId, position: int) -> bytes | None:
        """The part at a position; None after the last one."""


async def attached_content(
    sources: SourceFiles,
    organization_id: OrganizationId,
    thread_id: ThreadId | None,
    given: tuple[UserContent | AttachedSource, ...],
    *,
    teams: Teams = None,
) -> tuple[UserContent, ...]:
    """The content with sources of the thread as images and files. Content without sources is not
    bounded here: stored inputs of schedules and failed runs may be from before the bounds. Raises
    NOT_FOUND `source_not_found`, also for those of other teams than `teams`, INVALID
    `attachments_too_large`."""
    content: list[UserContent] = []
    attaches = any(isinstance(part, AttachedSource) for part in given)
    size = require_few_attachments(given, "input") if attaches else 0
    for part in given:
        if isinstance(part, AttachedSource):
            source = await sources.get(organization_id, part.source_id, teams=teams)
            if source is None or source.thread_id != thread_id:
                raise not_found("source", part.source_id)
            size += source.size
            require_small(size, "input")
            content.append(attachment(source.name, await _bytes_of(sources, source)))
        else:
            content.append(part)
    return tuple(content)


async def _bytes_of(sources: SourceFiles, source: Source) -> bytes:
    parts: list[bytes] = []
    while (part := await sources.part(source.organization_id, source.id, len(parts))) is not None:
        parts.append(part)
    return b"".join(parts)
