"""The audit trail, its seals and the keys that made them."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _audit_event()
    _audit_seal()
    _audit_head()
    _audit_key()


def _audit_event() -> None:
    op.create_table(
        "audit_event",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text()),
        sa.Column("tool", sa.Text()),
        sa.Column("server_id", sa.Text()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("arguments_digest", sa.Text()),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_event"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_audit_event_organization_id_at_id", "audit_event", ["organization_id", "at", "id"])
    op.create_index(
        "ix_audit_event_run_id",
        "audit_event",
        ["run_id"],
        sqlite_where=sa.text("run_id IS NOT NULL"),
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    protect("audit_event", requests_may="SELECT, INSERT")


def _audit_seal() -> None:
    op.create_table(
        "audit_seal",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.Column("sealed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", "number", name="pk_audit_seal"),
        sa.UniqueConstraint("event_id", name="uq_audit_seal_event_id"),
        sqlite_with_rowid=False,
    )
    protect("audit_seal", requests_may="SELECT")


def _audit_head() -> None:
    op.create_table(
        "audit_head",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.Column("pruned_through", sa.BigInteger(), nullable=False),
        sa.Column("pruned_seal", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", name="pk_audit_head"),
    )
    protect("audit_head", requests_may="SELECT")


def _audit_key() -> None:
    op.create_table(
        "audit_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_key"),
    )
    protect("audit_key", organization=None)
