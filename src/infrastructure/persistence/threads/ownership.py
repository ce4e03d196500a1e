"""Whose runs a thread has, for runners that delete it or its files."""

from sqlalchemy import Connection, bindparam, select

from domain.ids import ApiKeyId, ThreadId
from domain.threads.thread import thread_not_yours
from infrastructure.persistence.tables import run

_of_others = (
    select(run.c.id)
    .where(run.c.thread_id == bindparam("thread_id"), run.c.requested_by.is_distinct_from(bindparam("key_id")))
    .limit(1)
)


def refuse_if_run_by_others(connection: Connection, thread_id: ThreadId, runner: ApiKeyId | None) -> None:
    """Raise FORBIDDEN `thread_not_yours` if another key than `runner` has run agents on the
    thread."""
    if runner is None:
        return
    if connection.execute(_of_others, {"thread_id": thread_id, "key_id": runner}).first() is not None:
        raise thread_not_yours(thread_id)
