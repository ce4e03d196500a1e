"""Workflows and their versions."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_IN_USE = sa.text("deleted_at IS NULL")


def upgrade() -> None:
    """There are no workflows yet."""
    op.create_table(
        "workflow",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_workflow_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workflow"),
    )
    op.create_index(
        "ix_workflow_organization_id_created_at_id", "workflow", ["organization_id", "created_at", "id"], unique=False
    )
    op.create_index(
        "uq_workflow_name_in_use",
        "workflow",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=_IN_USE,
        postgresql_where=_IN_USE,
    )
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
    protect("workflow")
    protect("workflow_version")


def downgrade() -> None:
    """Workflows are lost."""
    op.drop_table("workflow_version")
    op.drop_table("workflow")
