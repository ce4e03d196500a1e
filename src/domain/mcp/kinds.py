"""Kinds of MCP servers that an organization may register and start."""

from collections.abc import Collection

from domain.errors import ErrorKind, ServiceError
from domain.mcp.packages import is_file
from domain.mcp.server import McpServerConfig, McpServerKind

ARCHIVE = "archive"
"""Packages that are installed from a file of this machine instead of a registry."""
KINDS = (*(kind.value for kind in McpServerKind), ARCHIVE)
NEW_ORGANIZATION_KINDS = ("http", "sse", "a2a", "npm", "python")
"""What a new organization has. Starting programs of this machine, or containers on it, requires a
grant."""
KIND_NOT_PERMITTED = "mcp_kind_not_permitted"


def kind_of(config: McpServerConfig) -> str:
    """The kind that the server needs."""
    return ARCHIVE if config.package is not None and is_file(config.package) else config.kind.value


def is_permitted(kinds: Collection[str] | None, config: McpServerConfig) -> bool:
    """Whether the kinds of an organization include the server's. None permits all kinds."""
    return kinds is None or kind_of(config) in kinds


def kind_refused(config: McpServerConfig) -> ServiceError:
    return ServiceError(KIND_NOT_PERMITTED, ErrorKind.FORBIDDEN, kind_refusal(config))


def kind_refusal(config: McpServerConfig) -> str:
    kind = kind_of(config)
    what = "installed from files of this machine" if kind == ARCHIVE else f"of kind {kind}"
    return f"This organization may not have MCP servers {what}. A platform key can permit it (mcp_kinds)."
