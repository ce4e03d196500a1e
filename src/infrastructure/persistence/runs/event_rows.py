"""Run events to rows and back. A message stored in the same step is only in `message`; its event
refers to it."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from sqlalchemy import Connection, Select, bindparam, select

from domain.ids import MessageId, OrganizationId, RunId
from domain.json_value import JsonObject
from domain.runs.events import NewEvent, RunEvent, RunEventType
from domain.threads.attachments import without_file_bytes
from domain.threads.message import Message
from domain.threads.message_json import timestamp
from infrastructure.persistence.columns.page_bytes import StoredSize, fitting
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared, prepared_insert
from infrastructure.persistence.tables import message, run_event

_insert = prepared_insert(run_event)

_of_run = (run_event.c.organization_id == bindparam("organization_id"), run_event.c.run_id == bindparam("run_id"))
_events = Prepared(
    select(
        run_event.c.run_id,
        run_event.c.seq,
        run_event.c.type,
        run_event.c.at,
        run_event.c.data,
        run_event.c.message_id,
    )
    .where(*_of_run, run_event.c.seq > bindparam("after_seq"))
    .order_by(run_event.c.seq)
    .limit(bindparam("limit"))
)
_messages: Select[Any] = (
    select(run_event.c.seq, message.c.role, message.c.content, message.c.created_at)
    .select_from(
        run_event.join(message, (message.c.run_id == run_event.c.run_id) & (message.c.id == run_event.c.message_id))
    )
    .where(*_of_run, run_event.c.seq.between(bindparam("first_seq"), bindparam("last_seq")))
    .order_by(run_event.c.seq)
)
_sizes = _messages.with_only_columns(StoredSize(message.c.content), maintain_column_froms=True)
_read_messages = Prepared(_messages)


def add_events(
    connection: Connection,
    organization_id: OrganizationId,
    run_id: RunId,
    events: Iterable[NewEvent],
    *,
    last_seq: int,
    messages: tuple[Message, ...] = (),
) -> None:
    """Store events up to the number `last_seq`; `messages` are those stored in the same step."""
    events = tuple(events)
    if not events:
        return
    stored_ids = {entry.id for entry in messages}
    first = last_seq - len(events) + 1
    rows: list[dict[str, object]] = []
    for seq, event in enumerate(events, first):
        message_id = _message_told_of(event) if stored_ids else None
        by_reference = message_id in stored_ids
        rows.append(
            {
                "run_id": run_id,
                "seq": seq,
                "organization_id": organization_id,
                "type": str(event.type),
                "at": event.at,
                "data": _beside_message(event.data) if by_reference else event.data,
                "message_id": message_id if by_reference else None,
            }
        )
    _insert.run(connection, *rows)


def events_after(connection: Connection, wanted: Mapping[str, Any]) -> tuple[RunEvent, ...]:
    """Events of the run `run_id` in `organization_id` after `after_seq`, up to `limit`. Large
    messages may end the page before its limit."""
    rows: list[Any] = _events.ask(connection, wanted).typed()
    told = [row.seq for row in rows if row.message_id is not None]
    if not told:
        return tuple([_event_of(row) for row in rows])
    between = {**wanted, "first_seq": told[0], "last_seq": told[-1]}
    if len(told) > 1:
        with connection.execute(_sizes, between) as sizes:
            fits = fitting(sizes.scalars())
        if fits < len(told):
            rows = [row for row in rows if row.seq < told[fits]]
            between["last_seq"] = told[fits - 1]
    # Retention may have deleted a message since its event was read.
    messages = {row.seq: row for row in _read_messages.ask(connection, between).typed()}
    return tuple(
        [_event_of(row, messages.get(row.seq)) for row in rows if row.message_id is None or row.seq in messages]
    )


def _event_of(row: AnyRow, told: AnyRow | None = None) -> RunEvent:
    return RunEvent(
        run_id=RunId(row.run_id),
        seq=row.seq,
        type=RunEventType(row.type),
        at=row.at,
        data=cast(JsonObject, row.data)
        if told is None
        else {"message": _message_json(row, told), **cast("JsonObject", row.data or {})},
    )


def _message_told_of(event: NewEvent) -> MessageId | None:
    if event.type is not RunEventType.MESSAGE_COMPLETED:
        return None
    told = event.data.get("message")
    return MessageId(cast(str, told["id"])) if isinstance(told, dict) and isinstance(told.get("id"), str) else None


def _beside_message(data: JsonObject) -> JsonObject | None:
    rest = {name: value for name, value in data.items() if name != "message"}
    return rest or None


def _message_json(row: AnyRow, told: AnyRow) -> JsonObject:
    """As `message_of_event` writes it; the content is stored in the same form, with the bytes of
    files."""
    return {
        "id": row.message_id,
        "role": told.role,
        "content": [without_file_bytes(part) for part in told.content],
        "created_at": timestamp(told.created_at),
        "run_id": row.run_id,
    }
