"""The audit trail in SQL."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from application.audit.ports import AuditFilter
from application.system.pages import Page, PageRequest
from domain.audit.event import DECISIONS, AuditEvent
from domain.ids import OrganizationId
from infrastructure.persistence.audit.rows import audit_event_of, record
from infrastructure.persistence.audit.seen_entries import seen_entries
from infrastructure.persistence.columns.paging import newest_first
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.months import read_past_changes
from infrastructure.persistence.tables import audit_event


class SqlAuditLog:
    """The `AuditLog` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def page(
        self, organization_id: OrganizationId, wanted: AuditFilter, request: PageRequest
    ) -> Page[AuditEvent]:
        statement = matching(organization_id, wanted)

        def unit(connection: Connection) -> Page[AuditEvent]:
            return newest_first(
                connection,
                statement,
                request,
                moment=audit_event.c.at,
                identifier=audit_event.c.id,
                convert=audit_event_of,
            )

        return await read_past_changes(self._database, unit, of=audit_event.name, scope=organization_id)

    async def record(self, audit: AuditEvent) -> None:
        await self._database.write(lambda connection: record(connection, audit), scope=audit.organization_id)


def matching(organization_id: OrganizationId, wanted: AuditFilter) -> Select[Any]:
    """Matching entries, to be ordered."""
    return select(audit_event).where(audit_event.c.organization_id == organization_id, *conditions(wanted))


# Literal in the statement, so that the partial index over decisions is used.
_is_decision = audit_event.c.action.in_(
    bindparam("all_decisions", [action.value for action in DECISIONS], expanding=True, literal_execute=True)
)


def conditions(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    """SQL conditions of the filter."""
    columns = audit_event.c
    found: list[ColumnElement[bool]] = []
    if wanted.action is not None and wanted.action.endswith(".*"):
        found.append(columns.action.startswith(wanted.action[:-1], autoescape=True))
    elif wanted.action is not None:
        found.append(columns.action == wanted.action)
    if wanted.decisions is not None:
        found += [_is_decision, columns.action.in_([action.value for action in wanted.decisions])]
    for column, value in (
        (columns.actor, wanted.actor),
        (columns.resource, wanted.resource),
        (columns.run_id, wanted.run_id),
        (columns.tool, wanted.tool),
        (columns.server_id, wanted.server_id),
    ):
        if value is not None:
            found.append(column == value)
    if wanted.since is not None:
        found.append(columns.at >= wanted.since)
    if wanted.until is not None:
        found.append(columns.at < wanted.until)
    found += seen_entries(wanted.teams)
    return found
