"""Tables of workflows and their versions."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, text

from infrastructure.persistence.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

# A workflow in use has a name nobody else has; a deleted one stays for the runs that name it. `secrets` are the names of
# those its newest version refers to.
workflow = Table(
    "workflow",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("secrets", JsonText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("deleted_at", Moment),
    Index(None, "organization_id", "created_at", "id"),
    Index(
        "uq_workflow_name_in_use",
        "organization_id",
        "name",
        unique=True,
        sqlite_where=text("deleted_at IS NULL"),
        postgresql_where=text("deleted_at IS NULL"),
    ),
)

workflow_version = Table(
    "workflow_version",
    metadata,
    Column("workflow_id", PlainText, ForeignKey("workflow.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("graph", JsonText, nullable=False),
    Column("updated_at", Moment, nullable=False),
)
