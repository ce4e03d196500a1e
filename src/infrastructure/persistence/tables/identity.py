"""Tables of organizations and their keys."""

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, Table

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
    Index(None, "organization_id", "created_at", "id"),
)
