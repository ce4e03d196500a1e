"""Table of model providers."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

# The key is encrypted in `api_key`, or in the secret `secret_name`, or missing. Keys of deployments
# are encrypted in `deployment_keys`, by the deployment's name; names of their secrets are in
# `deployments`.
model_provider = Table(
    "model_provider",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
    Column("name", PlainText, primary_key=True),
    Column("kind", PlainText, nullable=False),
    Column("base_url", PlainText, nullable=False),
    Column("wire", PlainText, nullable=False, server_default="auto"),
    Column("echo_reasoning", PlainText, nullable=False, server_default="tool_loop"),
    Column("cloud", JsonText),
    Column("api_key", LargeBinary),
    Column("secret_name", PlainText),
    Column("deployments", JsonText),
    Column("deployment_keys", LargeBinary),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "organization_id", "created_at", "name"),
)
