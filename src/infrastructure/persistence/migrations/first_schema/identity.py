"""Organizations and their API keys."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _organization()
    _api_key()


def _organization() -> None:
    op.create_table(
        "organization",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("mcp_enabled", sa.Boolean(), nullable=False, server_default=sa.true()),
        sa.Column("version", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("settings", sa.Text(), nullable=False, server_default="{}"),
        sa.PrimaryKeyConstraint("id", name="pk_organization"),
    )
    protect("organization", organization="id", requests_may="SELECT, UPDATE")


def _api_key() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("platform", sa.Boolean(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.Column("rate_calls", sa.Integer()),
        sa.Column("rate_per_s", sa.Double()),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_api_key_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("token_hash", name="uq_api_key_token_hash"),
    )
    op.create_index("ix_api_key_organization_id_created_at_id", "api_key", ["organization_id", "created_at", "id"])
    protect("api_key")
