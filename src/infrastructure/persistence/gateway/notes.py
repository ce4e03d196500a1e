"""Notes between processes about gateway calls, in SQL."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy.exc import IntegrityError

from domain.errors import not_found
from domain.gateway.note import GatewayNote
from domain.ids import GatewayNoteId, GatewaySessionId, OrganizationId, ToolCallId
from infrastructure.persistence.columns.column_types import Moment
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import gateway_call, gateway_note

_of_session = (
    gateway_note.c.organization_id == bindparam("of_organization"),
    gateway_note.c.session_id == bindparam("of_session"),
)
_insert = upsert(gateway_note).on_conflict_do_nothing(index_elements=["id"])
_one = select(gateway_note).where(*_of_session, gateway_note.c.id == bindparam("note_id"))
_of_call = (
    select(gateway_note)
    .where(*_of_session, gateway_note.c.call_id == bindparam("of_call"))
    .order_by(gateway_note.c.created_at, gateway_note.c.id)
)
_wait = (
    update(gateway_call)
    .where(gateway_call.c.session_id == bindparam("of_session"), gateway_call.c.id == bindparam("of_call"))
    .values(due_at=bindparam("until"))
)
_answer = (
    update(gateway_note)
    .where(
        *_of_session,
        gateway_note.c.id == bindparam("note_id"),
        gateway_note.c.answer.is_(None),
        gateway_note.c.expires_at > bindparam("now", type_=Moment()),
    )
    .values(answer=bindparam("new_answer"))
)
_remove = delete(gateway_note).where(
    gateway_note.c.organization_id == bindparam("of_organization"),
    gateway_note.c.id.in_(bindparam("ids", expanding=True)),
)
_forget = delete(gateway_note).where(gateway_note.c.expires_at < bindparam("before", type_=Moment()))
_note = row_fields(GatewayNote)


class _NotOpenError(Exception):
    """One of several questions cannot be answered any more, so none is."""


class SqlGatewayNotes:
    """The ports `GatewayNotes` and `ExpiredNotes`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def leave(self, *notes: GatewayNote, due_at: datetime | None = None) -> None:

        def unit(connection: Connection) -> None:
            connection.execute(_insert, [_note.write(note) for note in notes])
            if due_at is not None:
                of = {(note.session_id, note.call_id) for note in notes}
                waited = [{"of_session": session, "of_call": call, "until": due_at} for session, call in of]
                connection.execute(_wait, waited)

        try:
            await self._database.write(unit, scope=notes[0].organization_id)
        except IntegrityError as error:
            raise not_found("gateway session", notes[0].session_id) from error

    async def get(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, note_id: str
    ) -> GatewayNote | None:
        wanted = {"of_organization": organization_id, "of_session": session_id, "note_id": note_id}
        row = await self._database.read(
            lambda connection: connection.execute(_one, wanted).one_or_none(), scope=organization_id
        )
        return None if row is None else _note.of_row(row)

    async def of_call(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayNote, ...]:
        wanted = {"of_organization": organization_id, "of_session": session_id, "of_call": call_id}
        return await self._database.read(
            lambda connection: tuple(_note.of_row(row) for row in connection.execute(_of_call, wanted)),
            scope=organization_id,
        )

    async def answer(
        self,
        organization_id: OrganizationId,
        session_id: GatewaySessionId,
        answers: Mapping[GatewayNoteId, bytes],
        *,
        at: datetime,
    ) -> bool:
        of = {"of_organization": organization_id, "of_session": session_id, "now": at}

        def unit(connection: Connection) -> None:
            for note_id, answer in sorted(answers.items()):
                if not connection.execute(_answer, {**of, "note_id": note_id, "new_answer": answer}).rowcount:
                    raise _NotOpenError

        try:
            await self._database.write(unit, scope=organization_id)
        except _NotOpenError:
            return False
        return True

    async def remove(self, organization_id: OrganizationId, *note_ids: GatewayNoteId) -> None:
        gone = {"of_organization": organization_id, "ids": list(note_ids)}
        await self._database.write(lambda connection: connection.execute(_remove, gone), scope=organization_id)

    async def forget(self, *, before: datetime) -> int:
        return await self._database.write(
            lambda connection: connection.execute(_forget, {"before": before}).rowcount, scope=SYSTEM
        )
