"""What people granted to OAuth clients of the gateway."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0072"
down_revision = "0069"
branch_labels = None
depends_on = None

_COLUMNS = (("client_id", sa.Text()), ("client_name", sa.Text()), ("token_expires_at", sa.BigInteger()))


def upgrade() -> None:
    for name, kind in _COLUMNS:
        op.add_column("gateway_session", sa.Column(name, kind))
    op.create_table(
        "gateway_grant",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("client_hash", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("challenge", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("code_expires_at", sa.BigInteger(), nullable=False),
        sa.Column("redeemed_at", sa.BigInteger()),
        sa.Column("family_hash", sa.Text()),
        sa.Column("refresh_hash", sa.Text()),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["gateway_session.id"],
            name="fk_gateway_grant_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("session_id", name="pk_gateway_grant"),
        sa.UniqueConstraint("code_hash", name="uq_gateway_grant_code_hash"),
        sa.UniqueConstraint("family_hash", name="uq_gateway_grant_family_hash"),
    )
    op.create_index("ix_gateway_grant_client_hash", "gateway_grant", ["client_hash"])
    protect("gateway_grant")


def downgrade() -> None:
    op.drop_table("gateway_grant")
    for name, _ in _COLUMNS:
        op.drop_column("gateway_session", name)
