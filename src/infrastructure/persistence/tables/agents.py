"""Tables of agents and their versions."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# The name of an active agent is unique; a deleted agent stays for its runs. `max_running` and
# `team` are those of the newest version: for the queue, which reads the first for each line of
# waiting runs, and for lists.
agent = Table(
    "agent",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("deleted_at", Moment),
    Column("max_running", Integer),
    Column("team", PlainText),
    Index(None, "organization_id", "created_at", "id"),
    partial_index("ix_agent_bounded", "id", "max_running", where="max_running IS NOT NULL"),
    partial_index(
        "uq_agent_name_in_use",
        "organization_id",
        "name",
        unique=True,
        where="deleted_at IS NULL",
    ),
)

agent_version = Table(
    "agent_version",
    metadata,
    Column("agent_id", PlainText, ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("config", JsonText, nullable=False),
    Column("canary_tokens", LargeBinary),
    Column("updated_at", Moment, nullable=False),
)
