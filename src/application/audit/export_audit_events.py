"""ExportAuditEvents: export the audit trail in the order of its seals, for external storage or
verification."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from application.audit.ports import AuditChain, AuditFilter
from domain.audit.chain import Entry, Link
from domain.identity.api_key import Principal
from domain.identity.role import Role

BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAuditEventsCommand:
    principal: Principal
    wanted: AuditFilter = AuditFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedEntry:
    """A stored entry, and the seal that covers it, if any."""

    entry: Entry
    link: Link | None


class ExportAuditEvents:
    """Rules:
    - Any role may export what it may list (`ListAuditEvents`).
    - Sealed entries come first, by number, then unsealed entries, by time.
    - Memory is bounded: entries are read in batches.

    Raises: ServiceError role_insufficient, on the call and not during iteration.
    """

    def __init__(self, *, chain: AuditChain) -> None:
        self._chain = chain

    def execute(self, command: ExportAuditEventsCommand) -> AsyncIterator[tuple[ExportedEntry, ...]]:
        command.principal.require(Role.VIEWER)
        return self._parts(command)

    async def _parts(self, command: ExportAuditEventsCommand) -> AsyncIterator[tuple[ExportedEntry, ...]]:
        after, done = 0, False
        wanted = replace(command.wanted, teams=command.principal.visible_teams)
        while not done:
            part = await self._chain.export(command.principal.organization_id, wanted, after, BATCH)
            entries = [
                ExportedEntry(entry=stored.entry, link=stored.link) for stored in part.links if stored.entry is not None
            ]
            entries += [ExportedEntry(entry=entry, link=None) for entry in part.unsealed]
            yield tuple(entries)
            if part.links:
                after = part.links[-1].link.number
            done = part.is_last
