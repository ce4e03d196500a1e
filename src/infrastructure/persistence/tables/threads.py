"""Tables of threads and their messages."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, UniqueConstraint

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

thread = Table(
    "thread",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("quarantined_at", Moment),
    Column("quarantined_by", PlainText),
    Column("quarantined_for", PlainText),
    Column("forked_from", PlainText),
    Column("forked_before", PlainText),
    Column("team", PlainText),
    Index(None, "organization_id", "created_at", "id"),
    partial_index("ix_thread_team", "organization_id", "team", where="team IS NOT NULL"),
    partial_index(
        "ix_thread_quarantined",
        "id",
        where="quarantined_at IS NOT NULL",
    ),
    partial_index("ix_thread_forked_from", "forked_from", where="forked_from IS NOT NULL"),
)

# `position` counts from 1 in each thread, which has one writer: the holder of the lease on its
# active run, or of the thread's lock. A fork has copies of messages with their ids and positions.
# `provider_items` is encrypted with the key that `items_key` names; it is the last column, so that
# SQLite reads the others without it.
message = Table(
    "message",
    metadata,
    Column("thread_id", PlainText, ForeignKey("thread.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("id", PlainText, nullable=False),
    Column("organization_id", PlainText, nullable=False),
    Column("run_id", PlainText),
    Column("role", PlainText, nullable=False),
    Column("content", JsonText, nullable=False),
    Column("superseded", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("items_key", PlainText),
    Column("provider_items", LargeBinary),
    UniqueConstraint("run_id", "id"),
    partial_index("ix_message_items_key", "items_key", where="items_key IS NOT NULL"),
)
