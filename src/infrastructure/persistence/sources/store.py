"""Finished sources in SQL."""

from sqlalchemy import Connection, bindparam, delete, select, update

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import ApiKeyId, OrganizationId, SourceId, ThreadId
from domain.sources.source import MAX_SOURCES, Source
from domain.teams import Teams
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import newest_page
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.sources.rows import source_of
from infrastructure.persistence.tables import source, source_part
from infrastructure.persistence.tables.owners import team_of_thread
from infrastructure.persistence.threads.ownership import refuse_if_run_by_others
from infrastructure.persistence.threads.source_removal import remove_pieces

_finished = (source.c.organization_id == bindparam("of_organization"), source.c.finished.is_(True))
_get = select(source).where(*_finished, source.c.id == bindparam("named"))
_of_thread = (
    select(source)
    .where(*_finished, source.c.thread_id == bindparam("of_thread"))
    .order_by(source.c.created_at.desc(), source.c.id.desc())
    .limit(MAX_SOURCES)
)
_part = select(source_part.c.data).where(
    source_part.c.organization_id == bindparam("of_organization"),
    source_part.c.source_id == bindparam("named"),
    source_part.c.position == bindparam("at"),
)
_hide = update(source).where(*_finished, source.c.id == bindparam("named")).values(finished=False)
_delete = delete(source).where(
    source.c.organization_id == bindparam("of_organization"),
    source.c.id == bindparam("named"),
    source.c.finished.is_(False),
)


class SqlSourceStore:
    """The `SourceStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, organization_id: OrganizationId, source_id: SourceId, *, teams: Teams = None) -> Source | None:
        wanted = {"of_organization": organization_id, "named": source_id}
        statement = _get.where(*seen_by(teams, team_of_thread(source.c.thread_id)))
        row = await self._database.read(
            lambda connection: connection.execute(statement, wanted).first(), scope=organization_id
        )
        return None if row is None else source_of(row)

    async def page(self, organization_id: OrganizationId, thread_id: ThreadId, request: PageRequest) -> Page[Source]:
        statement = select(source).where(
            source.c.organization_id == organization_id, source.c.thread_id == thread_id, source.c.finished.is_(True)
        )
        return await self._database.read(newest_page(statement, request, source.c, source_of), scope=organization_id)

    async def of_thread(self, organization_id: OrganizationId, thread_id: ThreadId) -> tuple[Source, ...]:
        wanted = {"of_organization": organization_id, "of_thread": thread_id}
        rows = await self._database.read(
            lambda connection: connection.execute(_of_thread, wanted).all(), scope=organization_id
        )
        return tuple(source_of(row) for row in rows)

    async def part(self, organization_id: OrganizationId, source_id: SourceId, position: int) -> bytes | None:
        wanted = {"of_organization": organization_id, "named": source_id, "at": position}
        return await self._database.read(
            lambda connection: connection.execute(_part, wanted).scalar_one_or_none(), scope=organization_id
        )

    async def delete(
        self,
        organization_id: OrganizationId,
        source_id: SourceId,
        audit: AuditEvent,
        *,
        as_runner: ApiKeyId | None = None,
    ) -> bool:
        wanted = {"of_organization": organization_id, "named": source_id}

        def hide(connection: Connection) -> bool:
            found = connection.execute(_get, wanted).first()
            if found is not None:
                refuse_if_run_by_others(connection, ThreadId(found.thread_id), as_runner)
            gone = connection.execute(_hide, wanted).rowcount == 1
            if gone:
                record(connection, audit)
            return gone

        if not await self._database.write(hide, scope=organization_id):
            return False
        await remove_pieces(self._database, organization_id, source_id)
        await self._database.write(
            lambda connection: connection.execute(_delete, wanted).close(), scope=organization_id
        )
        return True
