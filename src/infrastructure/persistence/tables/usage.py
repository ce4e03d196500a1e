"""Tables of usage by models, by who started runs and by tools, and of reservations against daily
budgets."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table

from infrastructure.persistence.columns.column_types import NanoUsd, PlainText
from infrastructure.persistence.tables.naming import metadata

# `day` is the proleptic ordinal of a UTC date.
usage = Table(
    "usage",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("agent_id", PlainText, primary_key=True),
    Column("model", PlainText, primary_key=True),
    Column("model_calls", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cost_nano_usd", NanoUsd, nullable=False),
    Column("unpriced_calls", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False, server_default="0"),
    Column("estimated_calls", BigInteger, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)

# The same by who started the runs: `run.requested_by`.
person_usage = Table(
    "person_usage",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("started_by", PlainText, primary_key=True),
    Column("agent_id", PlainText, primary_key=True),
    Column("model", PlainText, primary_key=True),
    Column("model_calls", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("cost_nano_usd", NanoUsd, nullable=False),
    Column("unpriced_calls", BigInteger, nullable=False),
    Column("estimated_calls", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Calls of tools, of runs and gateway sessions, from their audit entries as these are sealed.
tool_usage = Table(
    "tool_usage",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("tool", PlainText, primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("failed_calls", BigInteger, nullable=False),
    Column("blocked_calls", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Only for runs with a daily budget of their agent or organization. Rows of ended runs are ignored.
budget_reservation = Table(
    "budget_reservation",
    metadata,
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("agent_id", PlainText, nullable=False),
    Column("day", Integer, nullable=False),
    Column("amount_nano_usd", NanoUsd, nullable=False),
    Index(None, "organization_id"),
)
