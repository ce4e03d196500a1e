"""Sessions of the console in SQL, and their list together with those of clients at the gateway."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, literal, null, select, union_all, update

from application.identity.ports import SessionFilter
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.console_session import MAX_SESSIONS, ConsoleSession, ListedSession
from domain.ids import ConsoleSessionId, OrganizationId
from infrastructure.persistence.audit.rows import recorded_change
from infrastructure.persistence.columns.column_types import Moment, PlainText
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import newest_page
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import console_session, gateway_session, impersonation

_one = (
    console_session.c.organization_id == bindparam("of_organization"),
    console_session.c.id == bindparam("of_session"),
)
_get = select(console_session).where(*_one)
_insert = console_session.insert()
_delete = delete(console_session).where(*_one)
_saw = update(console_session).where(*_one, console_session.c.last_seen_at < bindparam("moment"))
_delete_expired = delete(console_session).where(
    console_session.c.organization_id == bindparam("of_organization"),
    console_session.c.expires_at <= bindparam("moment"),
)
_newest = (
    select(console_session.c.id)
    .where(
        console_session.c.organization_id == bindparam("of_organization"),
        console_session.c.holder == bindparam("of_holder"),
    )
    .order_by(console_session.c.created_at.desc(), console_session.c.id.desc())
    .limit(MAX_SESSIONS)
)
_delete_oldest = delete(console_session).where(
    console_session.c.organization_id == bindparam("of_organization"),
    console_session.c.holder == bindparam("of_holder"),
    console_session.c.id.not_in(_newest),
)
_all = union_all(
    select(
        console_session.c.id,
        console_session.c.organization_id,
        literal("console").label("kind"),
        console_session.c.holder,
        console_session.c.created_at,
        console_session.c.last_seen_at,
        console_session.c.expires_at,
        console_session.c.address,
        console_session.c.user_agent,
        null().cast(PlainText).label("client_name"),
        null().cast(PlainText).label("actor"),
        null().cast(PlainText).label("reason"),
    ),
    select(
        gateway_session.c.id,
        gateway_session.c.organization_id,
        literal("client"),
        gateway_session.c.created_by,
        gateway_session.c.created_at,
        null().cast(Moment),
        gateway_session.c.expires_at,
        null().cast(PlainText),
        null().cast(PlainText),
        gateway_session.c.client_name,
        null().cast(PlainText),
        null().cast(PlainText),
    ).where(gateway_session.c.client_id.is_not(None), gateway_session.c.revoked_at.is_(None)),
    select(
        impersonation.c.id,
        impersonation.c.organization_id,
        literal("impersonation"),
        impersonation.c.user_id,
        impersonation.c.created_at,
        null().cast(Moment),
        impersonation.c.expires_at,
        null().cast(PlainText),
        null().cast(PlainText),
        null().cast(PlainText),
        impersonation.c.actor,
        impersonation.c.reason,
    ).where(impersonation.c.ended_at.is_(None)),
).subquery("session")

_session = row_fields(ConsoleSession)
_listed = row_fields(ListedSession)


class SqlConsoleSessionStore:
    """The `ConsoleSessionStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, session: ConsoleSession) -> None:
        wanted = {
            "of_organization": session.organization_id,
            "of_holder": session.holder,
            "moment": session.created_at,
        }

        def unit(connection: Connection) -> None:
            connection.execute(_delete_expired, wanted)
            connection.execute(_insert, _session.write(session))
            connection.execute(_delete_oldest, wanted)

        await self._database.write(unit, scope=session.organization_id)

    async def get(self, organization_id: OrganizationId, session_id: ConsoleSessionId) -> ConsoleSession | None:
        wanted = _wanted(organization_id, session_id)
        row = await self._database.read(
            lambda connection: connection.execute(_get, wanted).first(), scope=organization_id
        )
        return None if row is None else _session.of_row(row)

    async def saw(self, organization_id: OrganizationId, session_id: ConsoleSessionId, at: datetime) -> None:
        wanted = {**_wanted(organization_id, session_id), "moment": at}

        def unit(connection: Connection) -> None:
            connection.execute(_saw.values(last_seen_at=at), wanted)

        await self._database.write(unit, scope=organization_id)

    async def end(self, organization_id: OrganizationId, session_id: ConsoleSessionId, audit: AuditEvent) -> bool:
        wanted = _wanted(organization_id, session_id)
        return await self._database.write(recorded_change(_delete, wanted, audit), scope=organization_id)

    async def page(
        self, organization_id: OrganizationId, wanted: SessionFilter, request: PageRequest
    ) -> Page[ListedSession]:
        statement = select(_all).where(_all.c.organization_id == organization_id, _all.c.expires_at > wanted.at)
        if wanted.holder is not None:
            statement = statement.where(_all.c.holder == wanted.holder)
        if wanted.kind is not None:
            statement = statement.where(_all.c.kind == wanted.kind.value)
        return await self._database.read(newest_page(statement, request, _all.c, _listed.of_row), scope=organization_id)


def _wanted(organization_id: OrganizationId, session_id: ConsoleSessionId) -> dict[str, object]:
    return {"of_organization": organization_id, "of_session": session_id}
