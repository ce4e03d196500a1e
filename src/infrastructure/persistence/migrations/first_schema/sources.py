"""Sources of threads: their bytes, their text in chunks, and the index over the words of the
text."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

from infrastructure.persistence.migrations.row_security import protect

# An FTS5 table that reads its text from source_chunk ("external content"), kept in step by triggers
# as https://www.sqlite.org/fts5.html#external_content_tables has it. Deleting a source or a thread
# fires them too.
_FTS5 = (
    """
    CREATE VIRTUAL TABLE source_words USING fts5(
        thread_id, words, content='source_chunk', content_rowid='id',
        tokenize="unicode61 remove_diacritics 0 tokenchars '_'"
    )
    """,
    """
    CREATE TRIGGER source_chunk_added AFTER INSERT ON source_chunk BEGIN
        INSERT INTO source_words (rowid, thread_id, words) VALUES (new.id, new.thread_id, new.words);
    END
    """,
    """
    CREATE TRIGGER source_chunk_removed AFTER DELETE ON source_chunk BEGIN
        INSERT INTO source_words (source_words, rowid, thread_id, words)
        VALUES ('delete', old.id, old.thread_id, old.words);
    END
    """,
)


def create() -> None:
    _source()
    _source_part()
    _source_chunk()


def _source() -> None:
    op.create_table(
        "source",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.Column("run_id", sa.Text()),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["thread.id"], name="fk_source_thread_id_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_source"),
    )
    op.create_index("ix_source_thread_id_created_at_id", "source", ["thread_id", "created_at", "id"])
    op.create_index(
        "ix_source_on_its_way",
        "source",
        ["organization_id", "created_at"],
        sqlite_where=sa.text("NOT finished"),
        postgresql_where=sa.text("NOT finished"),
    )
    protect("source")


def _source_part() -> None:
    op.create_table(
        "source_part",
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["source.id"], name="fk_source_part_source_id_source", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "position", name="pk_source_part"),
    )
    protect("source_part")


def _source_chunk() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "source_chunk",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("start_line", sa.Integer(), nullable=False),
        sa.Column("end_line", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer()),
        sa.Column("heading", sa.Text()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("words", sa.Text() if on_sqlite else TSVECTOR(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["source.id"], name="fk_source_chunk_source_id_source", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_source_chunk"),
    )
    op.create_index("ix_source_chunk_source_id_position", "source_chunk", ["source_id", "position"])
    op.create_index("ix_source_chunk_thread_id", "source_chunk", ["thread_id"])
    if on_sqlite:
        for statement in _FTS5:
            op.execute(statement)
    else:
        op.create_index("ix_source_chunk_words", "source_chunk", ["words"], postgresql_using="gin")
    protect("source_chunk")
