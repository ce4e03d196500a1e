"""Tools of workflow runs; which of them a run or a gateway session sees."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No workflow run has a tool yet, so no run and no session sees one."""
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
    op.add_column("run_request", sa.Column("wired", sa.Text(), nullable=True))
    op.add_column("gateway_session", sa.Column("node_ids", sa.Text(), nullable=True))
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("gateway_session")}
    if "workflow_run_id" not in columns:
        op.execute(
            "ALTER TABLE gateway_session ADD COLUMN workflow_run_id TEXT"
            " CONSTRAINT fk_gateway_session_workflow_run_id_workflow_run"
            " REFERENCES workflow_run (id) ON DELETE CASCADE"
        )
    op.create_index("ix_gateway_session_workflow_run_id", "gateway_session", ["workflow_run_id"], unique=False)


def downgrade() -> None:
    """Sessions over tools of workflow runs are lost, and runs of their agents see none any more."""
    op.execute("DELETE FROM gateway_session WHERE workflow_run_id IS NOT NULL")
    op.drop_index("ix_gateway_session_workflow_run_id", "gateway_session")
    op.drop_column("gateway_session", "node_ids")
    # SQLite drops no column that refers to another table; empty, it does no harm.
    if op.get_bind().dialect.name != "sqlite":
        op.drop_column("gateway_session", "workflow_run_id")
    op.execute("UPDATE run_request SET tool_allowlist = '[]' WHERE wired IS NOT NULL")
    op.drop_column("run_request", "wired")
    op.drop_table("workflow_tool")
