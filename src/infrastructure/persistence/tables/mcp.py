"""Tables of MCP servers, their catalogs and grants."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, UniqueConstraint

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

# `secrets` is the encrypted JSON of env and headers; `config` is everything else, with the names of the secrets that
# those refer to.
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
    # What is installed: version, location and time; null while nothing is.
    Column("installed_version", PlainText),
    Column("installed_location", PlainText),
    Column("installed_at", Moment),
    UniqueConstraint("organization_id", "slug"),
    Index(None, "organization_id", "created_at", "id"),
)

# The newest catalog of a server without its tools, which stand in mcp_tool_definition. `revision` counts its changes.
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

# `standing` is null for an approved tool. `new` ones were never approved, of `changed` ones `approved_definition` was, and
# `dormant` ones are approved but not listed at present.
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
    Index(None, "server_id", "name"),
)

# How a server stands in a process that has to do with it; true while `seen_at` is young.
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

# Tokens for one MCP server from one authorization server; `sealed` is encrypted. Whoever holds the `claim` may use the
# refresh token until `claimed_until`.
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

# A person who was sent to an authorization server and is expected back; `sealed` is encrypted.
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
