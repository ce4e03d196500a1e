"""Workflows and their runs."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _workflow()
    _workflow_version()
    _workflow_run()
    _workflow_node_run()
    _workflow_event()
    _workflow_tool()


def _workflow() -> None:
    op.create_table(
        "workflow",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_workflow_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workflow"),
    )
    op.create_index("ix_workflow_organization_id_created_at_id", "workflow", ["organization_id", "created_at", "id"])
    op.create_index(
        "uq_workflow_name_in_use",
        "workflow",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    protect("workflow")


def _workflow_version() -> None:
    op.create_table(
        "workflow_version",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("graph", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_version_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workflow_id", "version", name="pk_workflow_version"),
    )
    protect("workflow_version")


def _workflow_run() -> None:
    op.create_table(
        "workflow_run",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("workflow_version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("input", sa.Text()),
        sa.Column("output", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("failed_node", sa.Text()),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("cancel_requested_by", sa.Text()),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Text()),
        sa.Column("lease_expires_at", sa.BigInteger()),
        sa.Column("wake_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("body_digest", sa.Text()),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_workflow_run_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_run_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_run"),
    )
    op.create_index(
        "ix_workflow_run_organization_id_created_at_id", "workflow_run", ["organization_id", "created_at", "id"]
    )
    op.create_index("ix_workflow_run_workflow_id", "workflow_run", ["workflow_id"])
    op.create_index(
        "ix_workflow_run_unfinished",
        "workflow_run",
        ["created_at", "id"],
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_index(
        "uq_workflow_run_idempotency_key",
        "workflow_run",
        ["organization_id", "idempotency_key"],
        unique=True,
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    protect("workflow_run")


def _workflow_node_run() -> None:
    op.create_table(
        "workflow_node_run",
        sa.Column("workflow_run_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("waits_for", sa.Text()),
        sa.Column("waits_seq", sa.Integer()),
        sa.ForeignKeyConstraint(
            ["workflow_run_id"],
            ["workflow_run.id"],
            name="fk_workflow_node_run_workflow_run_id_workflow_run",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workflow_run_id", "node_id", name="pk_workflow_node_run"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_workflow_node_run_waits_for",
        "workflow_node_run",
        ["waits_for"],
        sqlite_where=sa.text("waits_for IS NOT NULL"),
        postgresql_where=sa.text("waits_for IS NOT NULL"),
    )
    protect("workflow_node_run")


def _workflow_event() -> None:
    op.create_table(
        "workflow_event",
        sa.Column("workflow_run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_run_id"],
            ["workflow_run.id"],
            name="fk_workflow_event_workflow_run_id_workflow_run",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workflow_run_id", "seq", name="pk_workflow_event"),
        sqlite_with_rowid=False,
    )
    protect("workflow_event")


def _workflow_tool() -> None:
    op.create_table(
        "workflow_tool",
        sa.Column("workflow_run_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("registered_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_run_id"],
            ["workflow_run.id"],
            name="fk_workflow_tool_workflow_run_id_workflow_run",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workflow_run_id", "node_id", name="pk_workflow_tool"),
        sqlite_with_rowid=False,
    )
    protect("workflow_tool")
