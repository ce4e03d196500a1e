"""Threads and their messages in SQL."""

from sqlalchemy import Connection, bindparam, delete, func, select, update

from application.system.pages import Page, PageRequest
from application.threads.ports import Conversation, ReleasedThread
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.ids import ApiKeyId, OrganizationId, ThreadId
from domain.teams import Teams
from domain.threads.message import Message
from domain.threads.thread import Thread, not_quarantined
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.page_bytes import StoredSize, fitting
from infrastructure.persistence.columns.paging import among_newest, decode_cursor, encode_cursor, newest_page, page_of
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.identity.group_owners import require_group
from infrastructure.persistence.tables import message, thread
from infrastructure.persistence.threads.forks import add_fork
from infrastructure.persistence.threads.message_rows import add_messages, message_of, shown_columns
from infrastructure.persistence.threads.openings import opening_column, opening_has, opening_of
from infrastructure.persistence.threads.ownership import refuse_if_run_by_others
from infrastructure.persistence.threads.queue import lock_thread, next_run, refuse_if_busy, refuse_if_quarantined
from infrastructure.persistence.threads.rows import add_thread, thread_of
from infrastructure.persistence.threads.source_removal import hide_sources, remove_pieces_of_thread

_get = select(thread).where(
    thread.c.organization_id == bindparam("organization_id"), thread.c.id == bindparam("thread_id")
)
# `coalesce`, so that SQLite does not walk the organization's threads: those in quarantine have a
# small index.
quarantined = (
    select(thread)
    .where(
        thread.c.quarantined_at.is_not(None),
        func.coalesce(thread.c.organization_id, "") == bindparam("organization_id"),
    )
    .order_by(thread.c.quarantined_at.desc(), thread.c.id)
    .limit(bindparam("limit"))
)
_messages = (
    select(*shown_columns)
    .where(
        message.c.organization_id == bindparam("organization_id"),
        message.c.thread_id == bindparam("thread_id"),
        message.c.superseded.is_(False),
        message.c.position > bindparam("after"),
    )
    .order_by(message.c.position)
    .limit(bindparam("limit"))
)
_sizes = _messages.with_only_columns(StoredSize(message.c.content))
_release = (
    update(thread)
    .where(thread.c.id == bindparam("of_thread"), thread.c.quarantined_at.is_not(None))
    .values(quarantined_at=None, quarantined_by=None, quarantined_for=None)
)
_delete = delete(thread).where(thread.c.id == bindparam("thread_id"))


class SqlThreadStore:
    """The `ThreadStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, new: Thread) -> None:

        def unit(connection: Connection) -> None:
            require_group(connection, new.organization_id, new.team)
            add_thread(connection, new)

        await self._database.write(unit, scope=new.organization_id)

    async def get(self, organization_id: OrganizationId, thread_id: ThreadId) -> Thread | None:

        def unit(connection: Connection) -> Thread | None:
            row = connection.execute(_get, {"organization_id": organization_id, "thread_id": thread_id}).first()
            return None if row is None else thread_of(row)

        return await self._database.read(unit, scope=organization_id)

    async def fork(self, new: Thread) -> Message | None:
        point = new.forked_from
        if point is None:
            raise ValueError(f"The thread {new.id} is no fork.")
        return await self._database.write(
            lambda connection: add_fork(connection, new, point), scope=new.organization_id
        )

    async def conversations(
        self,
        organization_id: OrganizationId,
        search: str,
        request: PageRequest,
        *,
        forked_from: ThreadId | None = None,
    ) -> Page[Conversation]:
        statement = select(thread, opening_column).where(thread.c.organization_id == organization_id)
        if forked_from is not None:
            statement = statement.where(thread.c.forked_from == forked_from)
        if search:
            statement = statement.where(among_newest(thread, organization_id, teams=request.teams), opening_has(search))
        return await self._database.read(
            newest_page(
                statement,
                request,
                thread.c,
                lambda row: Conversation(thread=thread_of(row), opening=opening_of(row.opening)),
            ),
            scope=organization_id,
        )

    async def quarantined(
        self, organization_id: OrganizationId, limit: int, *, teams: Teams = None
    ) -> tuple[Thread, ...]:
        wanted = {"organization_id": organization_id, "limit": limit}
        seen = quarantined.where(*seen_by(teams, thread.c.team))
        return await self._database.read(
            lambda connection: tuple(thread_of(row) for row in connection.execute(seen, wanted)),
            scope=organization_id,
        )

    async def append(self, organization_id: OrganizationId, new: Message) -> None:

        def unit(connection: Connection) -> None:
            if not lock_thread(connection, organization_id, new.thread_id):
                raise not_found("thread", new.thread_id)
            refuse_if_quarantined(connection, new.thread_id)
            refuse_if_busy(connection, new.thread_id)
            add_messages(connection, organization_id, (new,), {})

        await self._database.write(unit, scope=organization_id)

    async def messages(
        self, organization_id: OrganizationId, thread_id: ThreadId, request: PageRequest
    ) -> Page[Message]:
        after = 0 if request.cursor is None else decode_cursor(request.cursor)[0]
        wanted = {
            "organization_id": organization_id,
            "thread_id": thread_id,
            "after": after,
        }

        def unit(connection: Connection) -> Page[Message]:
            with connection.execute(_sizes, {**wanted, "limit": request.limit}) as sizes:
                limit = fitting(sizes.scalars())
            rows = connection.execute(_messages, {**wanted, "limit": limit + 1}).all()
            return page_of(
                rows[:limit],
                message_of,
                more=len(rows) > limit,
                cursor=lambda row: encode_cursor(row.position),
            )

        return await self._database.read(unit, scope=organization_id)

    async def release(
        self, organization_id: OrganizationId, thread_id: ThreadId, audit: AuditEvent
    ) -> ReleasedThread | None:
        wanted = {"organization_id": organization_id, "thread_id": thread_id}

        def unit(connection: Connection) -> ReleasedThread | None:
            if not lock_thread(connection, organization_id, thread_id):
                return None
            if connection.execute(_release, {"of_thread": thread_id}).rowcount == 0:
                raise not_quarantined(thread_id)
            record(connection, audit)
            released = thread_of(connection.execute(_get, wanted).one())
            return ReleasedThread(thread=released, promoted=next_run(connection, thread_id))

        return await self._database.write(unit, scope=organization_id)

    async def delete(
        self,
        organization_id: OrganizationId,
        thread_id: ThreadId,
        audit: AuditEvent,
        *,
        as_runner: ApiKeyId | None = None,
    ) -> bool:
        emptied = False

        def unit(connection: Connection) -> bool | None:
            """None if the text of its sources must be removed first, which may take long."""
            if not lock_thread(connection, organization_id, thread_id):
                return False
            refuse_if_run_by_others(connection, thread_id, as_runner)
            refuse_if_quarantined(connection, thread_id)
            refuse_if_busy(connection, thread_id)
            if not emptied and hide_sources(connection, organization_id, thread_id):
                return None
            connection.execute(_delete, {"thread_id": thread_id})
            record(connection, audit)
            return True

        gone = await self._database.write(unit, scope=organization_id)
        if gone is None:
            await remove_pieces_of_thread(self._database, organization_id, thread_id)
            emptied = True
            gone = await self._database.write(unit, scope=organization_id)
        return gone is True
