"""Which queue a PostgreSQL database holds: Procrastinate's tables at the pinned version, in their
own schema. Read at every start; created by queue_install.py."""

from sqlalchemy import Connection, text

SCHEMA = "dragoman_queue"
"""Procrastinate's names are not qualified: a connection that uses them has this schema on its
search path."""
LIBRARY_SCHEMA = "03.04.00_50"
"""The newest of the installed library's migrations, as their files begin: what its schema is as a
whole."""
VERSION = f"{LIBRARY_SCHEMA}/7"
"""What an up-to-date database says; after the slash counts what we add."""
WORKS_WITH: tuple[str, ...] = (f"{LIBRARY_SCHEMA}/5", f"{LIBRARY_SCHEMA}/6")
"""Earlier versions whose code works with the queue of VERSION. See ADR 0085."""
QUEUE = "runs"
TASK = "execute_run"
STALLED_S = 30.0
"""A consumer without a heartbeat for this time is lost, and its jobs are removed."""

_stored = text("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = :schema").bindparams(
    schema=SCHEMA
)


def stored_version(connection: Connection) -> str | None:
    """What the database says of its queue; None if it has none."""
    return next(iter(_words(connection)), None)


def suits(connection: Connection) -> bool:
    """Whether this code works with the queue: it is of this version, or of a newer one that names
    this one."""
    return VERSION in _words(connection)


def _words(connection: Connection) -> list[str]:
    """The version of the queue, then those that its `WORKS_WITH` has."""
    return str(connection.execute(_stored).scalar_one_or_none() or "").split()
