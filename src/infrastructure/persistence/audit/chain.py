"""Reading the audit chain in SQL, in batches: to verify it, and to export it."""

from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select

from application.audit.ports import AuditFilter, ChainEnd, ExportPart
from domain.audit.chain import Entry
from domain.audit.chain_check import StoredLink
from domain.ids import OrganizationId
from infrastructure.persistence.audit.entries import ENTRY, IS_SEALED, LINKS, links_behind, stored_head, stored_link_of
from infrastructure.persistence.audit.log import conditions
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.months import read_past_changes
from infrastructure.persistence.tables import audit_event, audit_seal

_last_number = select(func.max(audit_seal.c.number)).where(audit_seal.c.organization_id == bindparam("of_organization"))
_MAX_UNSEALED = 10_000
"""The limit of an export's unsealed entries. Only a stopped sealing leaves more, which verify
reports."""


class SqlAuditChain:
    """The `AuditChain` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def end(self, organization_id: OrganizationId) -> ChainEnd:

        def unit(connection: Connection) -> ChainEnd:
            last = connection.execute(_last_number, {"of_organization": organization_id}).scalar_one_or_none()
            return ChainEnd(head=stored_head(connection, organization_id), last_number=last or 0)

        return await self._database.read(unit, scope=organization_id)

    async def links(self, organization_id: OrganizationId, after: int, limit: int) -> tuple[StoredLink, ...]:

        def unit(connection: Connection) -> tuple[StoredLink, ...]:
            return links_behind(connection, organization_id, after, limit)

        found = await self._database.read(unit, scope=organization_id)
        if any(stored.entry is None for stored in found):
            # A snapshot from before a month was removed does not show the entries of it that stay.
            return await self._database.read(unit, scope=organization_id)
        return found

    async def export(self, organization_id: OrganizationId, wanted: AuditFilter, after: int, limit: int) -> ExportPart:
        links = _matching_links(wanted).limit(limit)
        unsealed = _matching_unsealed(wanted)
        parameters = {"of_organization": organization_id, "behind": after}

        def matching(connection: Connection) -> ExportPart:
            found = tuple(stored_link_of(row) for row in connection.execute(links, parameters))
            if len(found) == limit:
                return ExportPart(links=found, unsealed=(), is_last=False)
            rows = connection.execute(unsealed, {"of_organization": organization_id})
            waiting: tuple[Entry, ...] = tuple(tuple(row) for row in rows)
            return ExportPart(links=found, unsealed=waiting, is_last=True)

        return await read_past_changes(self._database, matching, of=audit_event.name, scope=organization_id)


def _matching_links(wanted: AuditFilter) -> Select[Any]:
    joined = audit_seal.join(audit_event, audit_event.c.id == audit_seal.c.event_id)
    return LINKS.select_from(joined).where(*conditions(wanted)).order_by(audit_seal.c.number)


def _matching_unsealed(wanted: AuditFilter) -> Select[Any]:
    of_organization = audit_event.c.organization_id == bindparam("of_organization")
    return (
        select(*ENTRY)
        .where(of_organization, ~IS_SEALED, *conditions(wanted))
        .order_by(audit_event.c.at, audit_event.c.id)
        .limit(_MAX_UNSEALED)
    )
