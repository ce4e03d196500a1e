"""Tables of organizations, their keys, identity providers and users."""

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    false,
)

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

organization = Table(
    "organization",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("name", PlainText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("mcp_enabled", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("settings", JsonText, nullable=False),
    Column("inbox_webhook_secret", PlainText),
    Column("had_teams", Boolean, nullable=False, server_default=false()),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("role", PlainText, nullable=False),
    Column("platform", Boolean, nullable=False),
    Column("token_hash", PlainText, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("revoked_at", Moment),
    Column("expires_at", Moment),
    Column("last_used_at", Moment),
    Column("rate_calls", Integer),
    Column("rate_per_s", Double),
    Column("person_id", PlainText),
    Column("custom_role", PlainText),
    Index(None, "organization_id", "created_at", "id"),
)

identity_provider = Table(
    "identity_provider",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("issuer", PlainText, nullable=False),
    Column("client_id", PlainText, nullable=False),
    Column("client_secret", LargeBinary),
    Column("cli_client_id", PlainText),
    Column("scopes", JsonText, nullable=False),
    Column("audiences", JsonText, nullable=False),
    Column("rules", JsonText, nullable=False),
    Column("installation", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("organization_id", "name"),
    Index(None, "issuer"),
)

user_account = Table(
    "user_account",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("provider_id", PlainText, nullable=False),
    Column("issuer", PlainText, nullable=False),
    Column("subject", PlainText, nullable=False),
    Column("email", PlainText),
    Column("name", PlainText),
    Column("role", PlainText, nullable=False),
    Column("role_fixed", Boolean, nullable=False),
    Column("status", PlainText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("last_sign_in_at", Moment),
    Column("custom_role", PlainText),
    Column("may_impersonate", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("organization_id", "issuer", "subject"),
    Index(None, "organization_id", "created_at", "id"),
)

# Deleted when it ends. `holder` is a user or an API key.
console_session = Table(
    "console_session",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("holder", PlainText, nullable=False),
    Column("provider_id", PlainText),
    Column("created_at", Moment, nullable=False),
    Column("last_seen_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("address", PlainText),
    Column("user_agent", PlainText),
    Index(None, "organization_id", "holder", "created_at", "id"),
)

custom_role = Table(
    "custom_role",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("description", PlainText, nullable=False),
    Column("permissions", JsonText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    PrimaryKeyConstraint("organization_id", "name"),
)

# `actor` is a user or a platform key.
impersonation = Table(
    "impersonation",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("actor", PlainText, nullable=False),
    Column("user_id", PlainText, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("reason", PlainText, nullable=False),
    Column("token_hash", PlainText, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Index(None, "organization_id", "created_at"),
)
