"""Messages to rows and back."""

from typing import cast

from sqlalchemy import Connection, bindparam, func, select

from domain.ids import MessageId, OrganizationId, RunId, ThreadId
from domain.json_value import JsonObject, JsonValue
from domain.threads.message import Content, Message, Role
from domain.threads.message_json import content_from_json, content_to_json
from domain.threads.provider_items import ProviderItems
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import message as message_table
from infrastructure.persistence.threads.item_columns import NO_ITEMS, SealedItems

_earlier = message_table.alias("earlier")
_last_position = (
    select(func.coalesce(func.max(_earlier.c.position), 0))
    .where(_earlier.c.thread_id == bindparam("of_thread"))
    .scalar_subquery()
)
_new = message_table.insert().inline().values(position=_last_position + 1)
_with_items = [column.name for column in message_table.columns if column.name != "position"]
_insert = Prepared(_new, columns=[name for name in _with_items if name not in NO_ITEMS])
_insert_with_items = Prepared(_new, columns=_with_items)

shown_columns = [column for column in message_table.columns if column.name not in NO_ITEMS]
"""Without the provider's items, which only a claim reads."""


def add_messages(
    connection: Connection, organization_id: OrganizationId, messages: tuple[Message, ...], items: SealedItems
) -> None:
    """Append messages to their thread, in order, with their encrypted items."""
    if items:
        rows = [{**_row(organization_id, message), **items.get(message.id, NO_ITEMS)} for message in messages]
        _insert_with_items.run(connection, *rows)
    elif messages:
        _insert.run(connection, *[_row(organization_id, message) for message in messages])


def message_of(row: AnyRow, items: ProviderItems | None = None) -> Message:
    return Message(
        id=MessageId(row.id),
        thread_id=ThreadId(row.thread_id),
        run_id=None if row.run_id is None else RunId(row.run_id),
        role=Role(row.role),
        content=content_of(row.content),
        created_at=row.created_at,
        items=items,
    )


def content_json(content: tuple[Content, ...]) -> JsonValue:
    """Parts of a message as one JSON array."""
    return [content_to_json(part) for part in content]


def content_of(stored: JsonValue) -> tuple[Content, ...]:
    return tuple(content_from_json(part) for part in cast("list[JsonObject]", stored))


def _row(organization_id: OrganizationId, message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "organization_id": organization_id,
        "thread_id": message.thread_id,
        "of_thread": message.thread_id,
        "run_id": message.run_id,
        "role": str(message.role),
        "content": content_json(message.content),
        "superseded": False,
        "created_at": message.created_at,
    }
