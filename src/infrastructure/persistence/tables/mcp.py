"""Tables of MCP servers, their catalogs and grants."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, UniqueConstraint

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# `secrets` is the encrypted JSON of env and headers; `config` is the rest, with the names of their
# secrets. `team` repeats that of `config` for lists.
mcp_server = Table(
    "mcp_server",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("slug", PlainText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("config", JsonText, nullable=False),
    Column("secrets", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    # The installation: version, location, time and lock; null without one.
    Column("installed_version", PlainText),
    Column("installed_location", PlainText),
    Column("installed_at", Moment),
    Column("installed_lock", LargeBinary),
    Column("team", PlainText),
    UniqueConstraint("organization_id", "slug"),
    Index(None, "organization_id", "created_at", "id"),
)

# The newest catalog of a server; its tools are in mcp_tool_definition. `revision` counts its
# changes.
mcp_server_state = Table(
    "mcp_server_state",
    metadata,
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("server_version", Integer, nullable=False),
    Column("description", JsonText, nullable=False),
    Column("taken_at", Moment, nullable=False),
    Column("revision", Integer, nullable=False),
)

# `standing` is null for an approved tool. `new`: never approved. `changed`: `approved_definition`
# was approved. `dormant`: approved, but not listed now. `rejection`: a person has refused the
# definition of a `new` or `changed` one.
mcp_tool_definition = Table(
    "mcp_tool_definition",
    metadata,
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("organization_id", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("definition", JsonText, nullable=False),
    Column("standing", PlainText),
    Column("approved_definition", JsonText),
    Column("rejection", JsonText),
    Index(None, "server_id", "name"),
    partial_index("ix_mcp_tool_definition_standing", "server_id", "standing", "position", where="standing IS NOT NULL"),
)

# The state of a server in one process; valid while `seen_at` is recent.
mcp_connection_state = Table(
    "mcp_connection_state",
    metadata,
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("process", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("server_version", Integer, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("since", Moment, nullable=False),
    Column("last_error", PlainText),
    Column("protocol_version", PlainText),
    Column("tool_count", Integer),
    Column("seen_at", Moment, nullable=False),
    Index(None, "process"),
)

# Tokens for one MCP server from one authorization server; `sealed` is encrypted. The holder of
# `claim` may use the refresh token until `claimed_until`.
oauth_grant = Table(
    "oauth_grant",
    metadata,
    Column("organization_id", PlainText, primary_key=True),
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("issuer", PlainText, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("claim", PlainText),
    Column("claimed_until", Moment),
    Index(None, "server_id"),
)

# The same for the tokens of one person, and without an issuer for the secrets that they gave.
person_grant = Table(
    "person_grant",
    metadata,
    Column("organization_id", PlainText, primary_key=True),
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", PlainText, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("issuer", PlainText, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("claim", PlainText),
    Column("claimed_until", Moment),
    Index(None, "server_id"),
    Index(None, "person_id"),
)

# A pending authorization of a person; `sealed` is encrypted.
oauth_authorization = Table(
    "oauth_authorization",
    metadata,
    Column("state_hash", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index(None, "server_id"),
    Index(None, "expires_at"),
)
