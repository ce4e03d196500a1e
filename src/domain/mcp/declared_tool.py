"""Tools that an organization declares for a server. Such a server is sent calls and nothing else:
no handshake, no listing."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.errors import Violation
from domain.json_value import JsonObject, size_within
from domain.mcp.tool_name import is_legal_mcp_name

MAX_DECLARED_TOOLS = 200
MAX_DESCRIPTION = 16 * 1024
MAX_SCHEMA = 128 * 1024
"""Bounds of what one definition may bring into a prompt, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTool:
    """`name` is the server's own; `parameters` and `output_schema` are JSON Schemas."""

    name: str
    description: str
    parameters: JsonObject
    output_schema: JsonObject | None = None

    def as_listed(self) -> JsonObject:
        """The entry of `tools/list` that a server with a listing would send."""
        entry: JsonObject = {"name": self.name, "description": self.description, "inputSchema": self.parameters}
        return entry if self.output_schema is None else {**entry, "outputSchema": self.output_schema}


def wrong_declarations(tools: Sequence[DeclaredTool]) -> list[Violation]:
    """Violations of declared tools, each with the path of its field."""
    wrong = []
    if len(tools) > MAX_DECLARED_TOOLS:
        wrong.append(Violation(path="declared_tools", message=f"has more than {MAX_DECLARED_TOOLS} tools"))
    names: set[str] = set()
    for index, tool in enumerate(tools):
        found = {
            "name": _wrong_name(tool.name, names),
            "description": _wrong_description(tool.description),
            "parameters": _wrong_schema(tool.parameters),
            "output_schema": None if tool.output_schema is None else _wrong_schema(tool.output_schema),
        }
        wrong += [
            Violation(path=f"declared_tools.{index}.{field}", message=message)
            for field, message in found.items()
            if message is not None
        ]
        names.add(tool.name)
    return wrong


def _wrong_name(name: str, others: set[str]) -> str | None:
    if not is_legal_mcp_name(name):
        return "must be 1 to 128 characters of A-Z a-z 0-9 _ . -"
    return "is declared twice" if name in others else None


def _wrong_description(description: str) -> str | None:
    if not description.strip():
        return "must say what the tool does"
    return f"has more than {MAX_DESCRIPTION:,} characters" if len(description) > MAX_DESCRIPTION else None


def _wrong_schema(schema: JsonObject) -> str | None:
    if schema.get("type") != "object":
        return "must be a JSON Schema of type object"
    return f"has more than {MAX_SCHEMA:,} characters" if size_within(schema, MAX_SCHEMA) > MAX_SCHEMA else None
