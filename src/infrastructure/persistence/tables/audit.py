"""Tables of the audit trail."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# Entries outlive everything they describe: no foreign keys.
audit_event = Table(
    "audit_event",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("action", PlainText, nullable=False),
    Column("actor", PlainText, nullable=False),
    Column("resource", PlainText, nullable=False),
    Column("at", Moment, nullable=False),
    Column("run_id", PlainText),
    Column("tool", PlainText),
    Column("server_id", PlainText),
    Column("duration_ms", Integer),
    Column("arguments_digest", PlainText),
    Column("details", JsonText, nullable=False),
    Index(None, "organization_id", "at", "id"),
    partial_index(
        "ix_audit_event_run_id",
        "run_id",
        where="run_id IS NOT NULL",
    ),
    partial_index(
        "ix_audit_event_decisions",
        "organization_id",
        "at",
        "id",
        where="action IN ('tool.approval_given', 'tool.approved', 'tool.denied', 'run.question_answered',"
        " 'workflow.run_resumed', 'mcp_server.tool_approved', 'mcp_server.tool_rejected', 'thread.released',"
        " 'mcp_server.authorized')",
    ),
    sqlite_with_rowid=False,
)

# Seals are separate rows: an entry is never updated. Unsealed entries are found by time over the
# entries' index and this unique one, so runs maintain no index for it.
audit_seal = Table(
    "audit_seal",
    metadata,
    Column("organization_id", PlainText, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("event_id", PlainText, nullable=False, unique=True),
    Column("key_id", PlainText, nullable=False),
    Column("seal", PlainText, nullable=False),
    Column("sealed_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# The signed end of each chain, and its start after retention. Sealers take turns by locking this
# row.
audit_head = Table(
    "audit_head",
    metadata,
    Column("organization_id", PlainText, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("seal", PlainText, nullable=False),
    Column("pruned_through", BigInteger, nullable=False),
    Column("pruned_seal", PlainText, nullable=False),
    Column("key_id", PlainText, nullable=False),
    Column("signature", PlainText, nullable=False),
)

# How far each organization's chain has been sent to the receiver of audit entries.
audit_forward = Table(
    "audit_forward",
    metadata,
    Column("organization_id", PlainText, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("sent_at", Moment, nullable=False),
)

# Keys that have sealed, encrypted like other secrets, so that they outlive the secret key that they
# were derived from.
audit_key = Table(
    "audit_key",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("secret", LargeBinary, nullable=False),
)
