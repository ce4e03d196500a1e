"""Gateway sessions, their clients and calls."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _gateway_session()
    _gateway_client()
    _gateway_call()
    _gateway_note()


def _gateway_session() -> None:
    op.create_table(
        "gateway_session",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text()),
        sa.Column("token_hash", sa.Text()),
        sa.Column("names", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("node_ids", sa.Text()),
        sa.Column("workflow_run_id", sa.Text()),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_gateway_session_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["thread.id"], name="fk_gateway_session_thread_id_thread", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_gateway_session_run_id_run", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["workflow_run_id"],
            ["workflow_run.id"],
            name="fk_gateway_session_workflow_run_id_workflow_run",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_session"),
        sa.UniqueConstraint("token_hash", name="uq_gateway_session_token_hash"),
    )
    op.create_index("ix_gateway_session_thread_id", "gateway_session", ["thread_id"])
    op.create_index("ix_gateway_session_run_id", "gateway_session", ["run_id"])
    op.create_index(
        "ix_gateway_session_organization_id_created_at_id", "gateway_session", ["organization_id", "created_at", "id"]
    )
    op.create_index("ix_gateway_session_workflow_run_id", "gateway_session", ["workflow_run_id"])
    protect("gateway_session")


def _gateway_client() -> None:
    op.create_table(
        "gateway_client",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("log_level", sa.Text()),
        sa.Column("subscriptions", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["gateway_session.id"],
            name="fk_gateway_client_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_client"),
    )
    op.create_index("ix_gateway_client_session_id", "gateway_client", ["session_id"])
    protect("gateway_client")


def _gateway_call() -> None:
    op.create_table(
        "gateway_call",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text()),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("approval_id", sa.Text()),
        sa.Column("outcome", sa.Text()),
        sa.Column("error_code", sa.Text()),
        sa.Column("result", sa.Text()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("settled_at", sa.BigInteger()),
        sa.Column("due_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["gateway_session.id"],
            name="fk_gateway_call_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("session_id", "id", name="pk_gateway_call"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_gateway_call_open",
        "gateway_call",
        ["session_id", "name"],
        sqlite_where=sa.text("state <> 'settled'"),
        postgresql_where=sa.text("state <> 'settled'"),
    )
    protect("gateway_call")


def _gateway_note() -> None:
    op.create_table(
        "gateway_note",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text()),
        sa.Column("sealed", sa.LargeBinary()),
        sa.Column("answer", sa.LargeBinary()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["gateway_session.id"],
            name="fk_gateway_note_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_note"),
    )
    op.create_index("ix_gateway_note_expires_at", "gateway_note", ["expires_at"])
    op.create_index("ix_gateway_note_session_id_call_id_id", "gateway_note", ["session_id", "call_id", "id"])
    protect("gateway_note")
