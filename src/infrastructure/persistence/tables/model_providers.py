"""Table of model providers."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

# The key is encrypted in `api_key`, or in the secret `secret_name`, or missing.
model_provider = Table(
    "model_provider",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
    Column("name", PlainText, primary_key=True),
    Column("kind", PlainText, nullable=False),
    Column("base_url", PlainText, nullable=False),
    Column("api_key", LargeBinary),
    Column("secret_name", PlainText),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "organization_id", "created_at", "name"),
)
