"""Tables of named secrets."""

from sqlalchemy import Column, ForeignKey, Index, LargeBinary, Table

from infrastructure.persistence.columns.column_types import Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

# `value` is encrypted. References to secrets by name are in the referring configuration.
secret = Table(
    "secret",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
    Column("name", PlainText, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "organization_id", "created_at", "name"),
)
