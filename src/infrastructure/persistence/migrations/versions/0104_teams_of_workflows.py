"""Teams own workflows and their runs."""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0108"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workflow_run", sa.Column("team", sa.Text(), nullable=True))
    owned = sa.text("team IS NOT NULL")
    op.create_index(
        "ix_workflow_run_team",
        "workflow_run",
        ["organization_id", "team"],
        sqlite_where=owned,
        postgresql_where=owned,
    )
    for table in ("workflow", "workflow_version"):
        op.add_column(table, sa.Column("team", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_index("ix_workflow_run_team", "workflow_run")
    for table in ("workflow_version", "workflow", "workflow_run"):
        op.drop_column(table, "team")
