"""What an MCP server offers, as last seen: the snapshot that runs start from without asking the server again."""

from dataclasses import dataclass
from datetime import datetime

from domain.ids import McpServerId
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolDefinition:
    """A tool as its server describes it (MCP server/tools). Hints are only as good as the server's word."""

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    read_only_hint: bool = False
    idempotent_hint: bool = False
    destructive_hint: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTool:
    """A tool that could not be registered, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCatalog:
    """One server's tools at `taken_at`, in a deterministic order (by name)."""

    server_id: McpServerId
    server_version: int
    protocol_version: str
    server_name: str
    instructions: str | None
    tools: tuple[McpToolDefinition, ...]
    skipped: tuple[SkippedTool, ...]
    taken_at: datetime
