"""ServerFacts: what a server reports about itself when a connection begins."""

from dataclasses import dataclass

from mcp import ClientSession
from mcp.types import ServerCapabilities

from application.mcp.news import ListKind
from infrastructure.mcp.text import capped, clean

_MAX_INSTRUCTIONS = 16 * 1024
_MAX_NAME = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """Properties that a server reports about itself, cleaned."""

    protocol_version: str
    name: str
    instructions: str | None
    announces: frozenset[ListKind]
    has_log_levels: bool

    @classmethod
    def of(cls, session: ClientSession, protocol_version: str) -> "ServerFacts":
        capabilities = session.server_capabilities
        instructions = clean(session.instructions or "").strip()
        return cls(
            protocol_version=protocol_version,
            name=capped(clean(session.server_info.name), _MAX_NAME) if session.server_info else "",
            instructions=capped(instructions, _MAX_INSTRUCTIONS) or None,
            announces=_announced(capabilities),
            has_log_levels=bool(capabilities and capabilities.logging),
        )


def _announced(capabilities: ServerCapabilities | None) -> frozenset[ListKind]:
    """The lists for which the server reports changes."""
    if capabilities is None:
        return frozenset()
    of_kinds = {
        ListKind.TOOLS: capabilities.tools,
        ListKind.RESOURCES: capabilities.resources,
        ListKind.PROMPTS: capabilities.prompts,
    }
    return frozenset(kind for kind, said in of_kinds.items() if said is not None and said.list_changed)
