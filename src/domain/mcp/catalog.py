"""The catalog of an MCP server: a snapshot of its tools from which runs start without a request to
the server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from domain.hidden_text import hides_text
from domain.ids import McpServerId
from domain.json_value import JsonObject, canonical_digest, canonical_json
from domain.mcp.apps import Audience, audience_of, links_in

NO_VERSION = ""
"""Protocol version of a server that gets no handshake."""
PIN_VERSION = 2
"""Version of what is pinned. Version 1 was without `display`."""


@dataclass(frozen=True, kw_only=True)
class McpToolDefinition:
    """A tool as its server describes it (MCP server/tools). The hints are unverified claims of the
    server.

    `display` is what clients may show with the tool, in wire format: `title`, `icons`, `_meta`, and
    the parts of `annotations` that no policy reads.

    `pin_version` is 1 for a definition that an earlier release stored: its `display` was pinned by
    no one.
    """

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    read_only_hint: bool = False
    idempotent_hint: bool = False
    destructive_hint: bool | None = None
    display: JsonObject = field(default_factory=dict)
    pin_version: int = PIN_VERSION

    def as_json(self) -> JsonObject:
        """Everything that is pinned when the definition is approved."""
        pinned = self._first_parts()
        return pinned if self.pin_version < PIN_VERSION else {**pinned, "display": self.display}

    def _first_parts(self) -> JsonObject:
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
        display = stored.get("display")
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
            display=display if isinstance(display, dict) else {},
            pin_version=PIN_VERSION if isinstance(display, dict) else 1,
        )

    @cached_property
    def digest(self) -> str:
        """`sha256:` and hex over `as_json` as canonical JSON (sorted keys, no spaces, UTF-8). The
        server's order of keys does not matter; `1`, `1.0` and `true` differ."""
        return canonical_digest(self.as_json())

    def with_digest(self, digest: str) -> "McpToolDefinition":
        """This definition, whose digest was computed before."""
        vars(self)["digest"] = digest
        return self

    def is_same_as(self, other: "McpToolDefinition") -> bool:
        """Whether the pinned parts are equal. With a definition of an earlier release, these are
        the parts that it pinned."""
        if self.pin_version == other.pin_version:
            return self.digest == other.digest
        return self._first_digest == other._first_digest

    @cached_property
    def hides_text(self) -> bool:
        """Whether any part has characters that people do not see (`domain/hidden_text.py`)."""
        return hides_text(canonical_json({**self._first_parts(), "display": self.display}))

    @cached_property
    def audience(self) -> frozenset[Audience]:
        return audience_of(self.display.get("_meta"))

    @cached_property
    def app_links(self) -> frozenset[str]:
        """The `ui://` resources that render its results."""
        return links_in(self.display.get("_meta"))

    @cached_property
    def _first_digest(self) -> str:
        return canonical_digest(self._first_parts())


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTool:
    """A tool that could not be registered, and the reason."""

    name: str
    reason: str


MAX_REASON = 500
"""Characters of the reason of a rejection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A person's refusal of a tool's definition. `by` is the id of a key or a user, `reason` is for
    people."""

    by: str
    at: datetime
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class McpCatalog:
    """The tools of one server at `taken_at`, sorted by name.

    - `quarantined` names the tools that must not be used before they are approved. Each name maps
      to the approved definition, or to None if none was ever approved.
    - `dormant` holds approved definitions of tools that the server does not list at present. A
      catalog that was just listed has neither.
    - `rejected` names those of the quarantined tools whose present definition a person has refused.
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
    rejected: Mapping[str, Rejection] = field(default_factory=dict)
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

    @property
    def awaiting_approval(self) -> int:
        """How many tools wait for a person: those in quarantine that no one has rejected."""
        return len(self.quarantined) - len(self.rejected)

    @cached_property
    def _by_name(self) -> dict[str, McpToolDefinition]:
        return {tool.name: tool for tool in self.tools}
