"""Table of limits that all processes share."""

from sqlalchemy import Column, Float, Index, Integer, Table

from infrastructure.persistence.columns.column_types import PlainText
from infrastructure.persistence.tables.naming import metadata

# What a limit has given out. `valid_until` is in seconds of the database's clock; a row is deleted
# some time after it. Rates have one row per bucket, without a holder: `valid_until` is when the
# bucket is full again.
# Unlogged on PostgreSQL: after a crash of the server all limits begin afresh.
limit_lease = Table(
    "limit_lease",
    metadata,
    Column("limited", PlainText, primary_key=True),
    Column("holder", PlainText, primary_key=True),
    Column("amount", Integer, nullable=False),
    Column("valid_until", Float(53), nullable=False),
    Index(None, "holder"),
)
