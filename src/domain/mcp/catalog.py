"""The catalog of an MCP server: a snapshot of its tools from which runs start without a request to
the server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from domain.ids import McpServerId
from domain.json_value import JsonObject, canonical_digest


@dataclass(frozen=True, kw_only=True)
class McpToolDefinition:
    """A tool as its server describes it (MCP server/tools). The hints are unverified claims of the
    server.

    `display` is what clients may show with the tool, in wire format: `title`, `icons`, `_meta`, and
    the parts of `annotations` that no policy reads. It is not pinned.
    """

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    read_only_hint: bool = False
    idempotent_hint: bool = False
    destructive_hint: bool | None = None
    display: JsonObject = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        """Everything that is pinned when the definition is approved."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": {
                "read_only_hint": self.read_only_hint,
                "idempotent_hint": self.idempotent_hint,
                "destructive_hint": self.destructive_hint,
            },
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> "McpToolDefinition":
        """The inverse of `as_json`."""
        hints, output_schema, input_schema = stored["annotations"], stored["output_schema"], stored["input_schema"]
        if not isinstance(hints, dict) or not isinstance(input_schema, dict):
            raise ValueError("not a tool definition")
        destructive = hints["destructive_hint"]
        return cls(
            name=str(stored["name"]),
            description=str(stored["description"]),
            input_schema=input_schema,
            output_schema=output_schema if isinstance(output_schema, dict) else None,
            read_only_hint=hints["read_only_hint"] is True,
            idempotent_hint=hints["idempotent_hint"] is True,
            destructive_hint=None if destructive is None else destructive is True,
        )

    @cached_property
    def digest(self) -> str:
        """`sha256:` and hex over `as_json` as canonical JSON (sorted keys, no spaces, UTF-8). The
        server's order of keys does not matter; `1`, `1.0` and `true` differ."""
        return canonical_digest(self.as_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTool:
    """A tool that could not be registered, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class McpCatalog:
    """The tools of one server at `taken_at`, sorted by name.

    - `quarantined` names the tools that must not be used before they are approved. Each name maps
      to the approved definition, or to None if none was ever approved.
    - `dormant` holds approved definitions of tools that the server does not list at present. A
      catalog that was just listed has neither.
    - `revision` counts the stored catalogs of the server. A catalog replaces only the revision that
      it was derived from.
    """

    server_id: McpServerId
    server_version: int
    protocol_version: str
    server_name: str
    instructions: str | None
    tools: tuple[McpToolDefinition, ...]
    skipped: tuple[SkippedTool, ...]
    taken_at: datetime
    quarantined: Mapping[str, McpToolDefinition | None] = field(default_factory=dict)
    dormant: tuple[McpToolDefinition, ...] = ()
    revision: int = field(default=0, compare=False)

    def find(self, name: str) -> McpToolDefinition | None:
        """The tool with this name, as the server last described it."""
        return self._by_name.get(name)

    @property
    def usable(self) -> tuple[McpToolDefinition, ...]:
        """The tools that are not quarantined."""
        if not self.quarantined:
            return self.tools
        return tuple(tool for tool in self.tools if tool.name not in self.quarantined)

    @cached_property
    def _by_name(self) -> dict[str, McpToolDefinition]:
        return {tool.name: tool for tool in self.tools}
