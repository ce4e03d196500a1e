"""ExportAuditEvents: the trail in the order of its seals, for somebody else to keep or to check."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from application.audit.ports import AuditChain, AuditFilter
from domain.audit.chain import Entry, Link
from domain.identity.api_key import Principal
from domain.identity.role import Role

BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAuditEventsCommand:
    """Which entries."""

    principal: Principal
    wanted: AuditFilter = AuditFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedEntry:
    """An entry as it is stored, with the seal that covers it if there is one."""

    entry: Entry
    link: Link | None


class ExportAuditEvents:
    """Any role may export what it may read: sealed entries by number, then those that are not sealed yet, by time.
    What is read at a time is bounded."""

    def __init__(self, *, chain: AuditChain) -> None:
        self._chain = chain

    def execute(self, command: ExportAuditEventsCommand) -> AsyncIterator[tuple[ExportedEntry, ...]]:
        """Parts of the export. Raises FORBIDDEN at once, not when the first part is asked for."""
        command.principal.require(Role.VIEWER)
        return self._parts(command)

    async def _parts(self, command: ExportAuditEventsCommand) -> AsyncIterator[tuple[ExportedEntry, ...]]:
        after, done = 0, False
        while not done:
            part = await self._chain.export(command.principal.organization_id, command.wanted, after, BATCH)
            entries = [
                ExportedEntry(entry=stored.entry, link=stored.link) for stored in part.links if stored.entry is not None
            ]
            entries += [ExportedEntry(entry=entry, link=None) for entry in part.unsealed]
            yield tuple(entries)
            if part.links:
                after = part.links[-1].link.number
            done = part.is_last
