"""Threads and their messages."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _thread()
    _message()


def _thread() -> None:
    op.create_table(
        "thread",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("quarantined_at", sa.BigInteger()),
        sa.Column("quarantined_by", sa.Text()),
        sa.Column("quarantined_for", sa.Text()),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_thread_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_thread"),
    )
    op.create_index("ix_thread_organization_id_created_at_id", "thread", ["organization_id", "created_at", "id"])
    op.create_index(
        "ix_thread_quarantined",
        "thread",
        ["id"],
        sqlite_where=sa.text("quarantined_at IS NOT NULL"),
        postgresql_where=sa.text("quarantined_at IS NOT NULL"),
    )
    protect("thread")


def _message() -> None:
    op.create_table(
        "message",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text()),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["thread.id"], name="fk_message_thread_id_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread_id", "position", name="pk_message"),
        sa.UniqueConstraint("run_id", "id", name="uq_message_run_id_id"),
    )
    protect("message")
