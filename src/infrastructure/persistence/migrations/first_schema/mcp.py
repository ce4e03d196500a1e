"""MCP servers, their tools, connections and OAuth grants."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _mcp_server()
    _mcp_server_state()
    _mcp_tool_definition()
    _mcp_connection_state()
    _oauth_grant()
    _oauth_authorization()


def _mcp_server() -> None:
    op.create_table(
        "mcp_server",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("installed_version", sa.Text()),
        sa.Column("installed_location", sa.Text()),
        sa.Column("installed_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_mcp_server_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_mcp_server"),
        sa.UniqueConstraint("organization_id", "slug", name="uq_mcp_server_organization_id_slug"),
    )
    op.create_index(
        "ix_mcp_server_organization_id_created_at_id", "mcp_server", ["organization_id", "created_at", "id"]
    )
    protect("mcp_server")


def _mcp_server_state() -> None:
    op.create_table(
        "mcp_server_state",
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_version", sa.Integer(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False, server_default="1"),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_mcp_server_state_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("server_id", name="pk_mcp_server_state"),
    )
    protect("mcp_server_state")


def _mcp_tool_definition() -> None:
    op.create_table(
        "mcp_tool_definition",
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("standing", sa.Text()),
        sa.Column("approved_definition", sa.Text()),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_mcp_tool_definition_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("server_id", "position", name="pk_mcp_tool_definition"),
    )
    op.create_index("ix_mcp_tool_definition_server_id_name", "mcp_tool_definition", ["server_id", "name"])
    protect("mcp_tool_definition")


def _mcp_connection_state() -> None:
    op.create_table(
        "mcp_connection_state",
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_version", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.Column("protocol_version", sa.Text()),
        sa.Column("tool_count", sa.Integer()),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_mcp_connection_state_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("server_id", "process", name="pk_mcp_connection_state"),
    )
    op.create_index("ix_mcp_connection_state_process", "mcp_connection_state", ["process"])
    protect("mcp_connection_state")


def _oauth_grant() -> None:
    op.create_table(
        "oauth_grant",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("claim", sa.Text()),
        sa.Column("claimed_until", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_oauth_grant_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", "server_id", "issuer", name="pk_oauth_grant"),
    )
    op.create_index("ix_oauth_grant_server_id", "oauth_grant", ["server_id"])
    protect("oauth_grant")


def _oauth_authorization() -> None:
    op.create_table(
        "oauth_authorization",
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_oauth_authorization_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("state_hash", name="pk_oauth_authorization"),
    )
    op.create_index("ix_oauth_authorization_server_id", "oauth_authorization", ["server_id"])
    op.create_index("ix_oauth_authorization_expires_at", "oauth_authorization", ["expires_at"])
    protect("oauth_authorization")
