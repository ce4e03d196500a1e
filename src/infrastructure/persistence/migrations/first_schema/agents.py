"""Agents and their versions, and what they are configured with: secrets and model providers."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _agent()
    _agent_version()
    _secret()
    _model_provider()


def _agent() -> None:
    op.create_table(
        "agent",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_agent_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_agent"),
    )
    op.create_index("ix_agent_organization_id_created_at_id", "agent", ["organization_id", "created_at", "id"])
    op.create_index(
        "uq_agent_name_in_use",
        "agent",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    protect("agent")


def _agent_version() -> None:
    op.create_table(
        "agent_version",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("canary_tokens", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], name="fk_agent_version_agent_id_agent", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("agent_id", "version", name="pk_agent_version"),
    )
    protect("agent_version")


def _secret() -> None:
    op.create_table(
        "secret",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_secret_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", "name", name="pk_secret"),
    )
    op.create_index("ix_secret_organization_id_created_at_name", "secret", ["organization_id", "created_at", "name"])
    protect("secret")


def _model_provider() -> None:
    op.create_table(
        "model_provider",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("api_key", sa.LargeBinary()),
        sa.Column("secret_name", sa.Text()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_model_provider_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "name", name="pk_model_provider"),
    )
    op.create_index(
        "ix_model_provider_organization_id_created_at_name", "model_provider", ["organization_id", "created_at", "name"]
    )
    protect("model_provider")
