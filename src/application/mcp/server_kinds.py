"""Which kinds of server can be used so far."""

from domain.errors import Violation, invalid
from domain.mcp.server import McpServerConfig, McpServerKind

_INSTALLED_KINDS = frozenset({McpServerKind.NPM, McpServerKind.PYTHON})


def require_usable_kind(config: McpServerConfig) -> None:
    """Raise INVALID `kind_not_available_yet` for kinds that have to be installed first, which nothing does yet."""
    if config.kind in _INSTALLED_KINDS:
        raise invalid(
            "kind_not_available_yet",
            f"Servers of kind {config.kind} cannot be installed yet; use kind custom with the command that starts it.",
            Violation(path="kind", message="is not available yet; use custom, sse or http"),
        )
