"""Tables of people and groups: what directories manage by SCIM, and groups that organizations
manage."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, UniqueConstraint

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

scim_token = Table(
    "scim_token",
    metadata,
    Column("provider_id", PlainText, ForeignKey("identity_provider.id", ondelete="CASCADE"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("token_hash", PlainText, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
)

provisioned_user = Table(
    "provisioned_user",
    metadata,
    Column("user_id", PlainText, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("provider_id", PlainText, ForeignKey("identity_provider.id", ondelete="CASCADE"), nullable=False),
    Column("name_key", PlainText, nullable=False),
    Column("entry", JsonText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    UniqueConstraint("provider_id", "name_key"),
)

user_group = Table(
    "user_group",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("provider_id", PlainText, ForeignKey("identity_provider.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("external_id", PlainText),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    UniqueConstraint("provider_id", "name"),
    Index(None, "organization_id", "name"),
)

user_group_member = Table(
    "user_group_member",
    metadata,
    Column("group_id", PlainText, ForeignKey("user_group.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", PlainText, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False),
    Column("organization_id", PlainText, nullable=False),
    PrimaryKeyConstraint("group_id", "user_id"),
    Index(None, "user_id"),
)

organization_group = Table(
    "organization_group",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("claims", JsonText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    UniqueConstraint("organization_id", "name"),
)

organization_group_member = Table(
    "organization_group_member",
    metadata,
    Column("group_id", PlainText, ForeignKey("organization_group.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", PlainText, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False),
    Column("by_claim", Boolean, nullable=False),
    Column("organization_id", PlainText, nullable=False),
    PrimaryKeyConstraint("group_id", "user_id", "by_claim"),
    Index(None, "user_id"),
)
