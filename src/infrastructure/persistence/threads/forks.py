"""A fork of a thread: its row, and copies of messages that never leave the database."""

from sqlalchemy import Connection, bindparam, insert, null, select

from domain.errors import not_found
from domain.threads.message import Message
from domain.threads.thread import ForkPoint, Thread, require_fork_before
from infrastructure.persistence.tables import message
from infrastructure.persistence.threads.message_rows import message_of, shown_columns
from infrastructure.persistence.threads.queue import locked_team, refuse_if_busy, refuse_if_quarantined
from infrastructure.persistence.threads.rows import add_thread

_of_thread = (message.c.thread_id == bindparam("from_thread"), message.c.superseded.is_(False))
_place = select(*shown_columns).where(*_of_thread, message.c.id == bindparam("before"))
_changed = {"thread_id": bindparam("to_thread", type_=message.c.thread_id.type), "run_id": null()}
_copied = select(*[_changed.get(column.name, column).label(column.name) for column in message.columns]).where(
    *_of_thread
)


def add_fork(connection: Connection, new: Thread, point: ForkPoint) -> Message | None:
    """As `ThreadStore.fork`. Items stay sealed: they are bound to the message's id, which the copy
    has."""
    locked = locked_team(connection, new.organization_id, point.thread_id)
    # It may have been given to a team since it was read.
    if locked is None or locked.name != new.team:
        raise not_found("thread", point.thread_id)
    refuse_if_quarantined(connection, point.thread_id)
    wanted: dict[str, object] = {"from_thread": point.thread_id, "to_thread": new.id}
    copied, replaced = _copied, None
    if point.before is None:
        refuse_if_busy(connection, point.thread_id)
    else:
        place = connection.execute(_place, {"from_thread": point.thread_id, "before": point.before}).first()
        if place is None:
            raise not_found("message", point.before)
        replaced = message_of(place)
        require_fork_before(replaced)
        copied = copied.where(message.c.position < bindparam("end"))
        wanted["end"] = place.position
    add_thread(connection, new)
    connection.execute(insert(message).from_select([column.name for column in message.columns], copied), wanted)
    return replaced
