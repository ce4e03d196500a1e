"""Tables of the sources of threads: metadata, bytes in parts, and text in chunks."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import Moment, PlainText
from infrastructure.persistence.columns.search_words import SearchWords
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# A source that is not `finished` is being uploaded, and not visible.
source = Table(
    "source",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("thread_id", PlainText, ForeignKey("thread.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("digest", PlainText, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("problem", PlainText),
    Column("run_id", PlainText),
    Column("finished", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Index(None, "thread_id", "created_at", "id"),
    partial_index(
        "ix_source_on_its_way",
        "organization_id",
        "created_at",
        where="NOT finished",
    ),
)

source_part = Table(
    "source_part",
    metadata,
    Column("source_id", PlainText, ForeignKey("source.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("organization_id", PlainText, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# Searched by `words`: on PostgreSQL by a GIN index, on SQLite by the FTS5 table `source_words`,
# which triggers update; `id` is its rowid. Only the migration creates both.
source_chunk = Table(
    "source_chunk",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("thread_id", PlainText, nullable=False),
    Column("source_id", PlainText, ForeignKey("source.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("start_line", Integer, nullable=False),
    Column("end_line", Integer, nullable=False),
    Column("page", Integer),
    Column("heading", PlainText),
    Column("text", PlainText, nullable=False),
    Column("words", SearchWords, nullable=False),
    Index(None, "source_id", "position"),
    Index(None, "thread_id"),
)
