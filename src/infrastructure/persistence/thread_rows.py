"""Threads to rows and back."""

from typing import cast

from sqlalchemy import Connection

from domain.ids import OrganizationId, ThreadId
from domain.json_value import JsonObject
from domain.threads.thread import Thread
from infrastructure.persistence.paging import AnyRow
from infrastructure.persistence.tables import thread

_insert = thread.insert()


def add_thread(connection: Connection, new: Thread) -> None:
    """Store a thread within a larger transaction."""
    connection.execute(
        _insert,
        {
            "id": new.id,
            "organization_id": new.organization_id,
            "metadata": new.metadata,
            "created_at": new.created_at,
        },
    )


def thread_of(row: AnyRow) -> Thread:
    """From a row of `thread`."""
    return Thread(
        id=ThreadId(row.id),
        organization_id=OrganizationId(row.organization_id),
        metadata=cast(JsonObject, row.metadata),
        created_at=row.created_at,
    )
