"""Parses `tools/list` (MCP server/tools): all pages, in a fixed order, invalid entries skipped. No
I/O except `list_page`."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from application.mcp.ports import McpFailure, McpFailureKind
from application.system.turns import in_turns
from domain.json_value import JsonObject, JsonValue, size_within
from domain.mcp.catalog import McpToolDefinition, SkippedTool
from domain.mcp.declared_tool import MAX_DESCRIPTION, MAX_SCHEMA, DeclaredTool
from domain.mcp.tool_name import is_legal_mcp_name
from infrastructure.mcp.catalogs.display import read_display
from infrastructure.mcp.pace import FREE_BYTES
from infrastructure.mcp.text import capped, clean, without_halves
from infrastructure.mcp.transports.value_count import MAX_VALUES, count_values
from infrastructure.schemas.json_schemas import JsonSchemaValidator

MAX_TOOLS = 10_000
_MAX_PAGES = 1_000
MAX_LISTING = 8 * 1024 * 1024
"""Most characters of all definitions of a server."""
_MAX_SHOWN_NAME = 128
HeaderMap = Mapping[tuple[str, ...], str]
ListPage = Callable[[str | None], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """A server's tools and the skipped entries, ordered by name. `header_maps` gives, per tool, the
    arguments repeated in HTTP headers (2026-07-28, basic/transports)."""

    tools: tuple[McpToolDefinition, ...]
    skipped: tuple[SkippedTool, ...]
    header_maps: Mapping[str, HeaderMap]


class Entry(NamedTuple):
    """An entry of a list as it was read. `size` is that of a definition in characters."""

    read: McpToolDefinition | SkippedTool
    size: int = 0
    header_map: HeaderMap | None = None

    @classmethod
    def of(cls, entry: object) -> "Entry":
        read = _read_tool(entry)
        if isinstance(read, SkippedTool):
            return cls(read)
        return cls(read, _size(read), x_mcp_header_map(read.input_schema))

    @classmethod
    def of_text(cls, text: bytes) -> "Entry":
        """Of the JSON text of an entry."""
        if len(text) > FREE_BYTES and count_values(text) > MAX_VALUES:
            return cls(SkippedTool(name="", reason=f"it has more than {MAX_VALUES:,} values"))
        try:
            return cls.of(msgspec.json.decode(text))
        except (msgspec.DecodeError, ValueError, RecursionError):
            return cls.of(_odd_value(text))


async def read_listing(list_page: ListPage, *, entry_of: Callable[[bytes], Entry] = Entry.of_text) -> ToolListing:
    """Read all pages; `list_page` takes the cursor. `entry_of` reads entries that are JSON text
    (`msgspec.Raw`). Raises: the errors of `list_page`; McpFailure INVALID_REPLY for invalid pages
    or a list without an end."""
    tools: dict[str, McpToolDefinition] = {}
    skipped: list[SkippedTool] = []
    header_maps: dict[str, HeaderMap] = {}
    left = MAX_LISTING
    cursor: str | None = None
    cursors: set[str] = set()
    while True:
        page = await list_page(cursor)
        entries = page.get("tools")
        if not isinstance(entries, list):
            raise _invalid("The server's list of tools is not valid.")
        async for entry in in_turns(entries):
            definition, size, header_map = entry_of(bytes(entry)) if isinstance(entry, msgspec.Raw) else Entry.of(entry)
            if isinstance(definition, SkippedTool):
                skipped.append(definition)
            elif definition.name in tools:
                skipped.append(SkippedTool(name=definition.name, reason="another tool of the server has this name"))
            elif size > left:
                reason = f"the definitions of a server have at most {MAX_LISTING:,} characters"
                skipped.append(SkippedTool(name=definition.name, reason=reason))
            else:
                left -= size
                tools[definition.name] = definition
                if header_map:
                    header_maps[definition.name] = header_map
        cursor = page.get("nextCursor")
        if not cursor:
            break
        if not isinstance(cursor, str) or cursor in cursors or len(cursors) >= _MAX_PAGES or len(tools) > MAX_TOOLS:
            raise _invalid("The server's list of tools does not end.")
        cursors.add(cursor)
    return ToolListing(
        tools=tuple(tools[name] for name in sorted(tools)),
        skipped=_by_name(*skipped),
        header_maps=header_maps,
    )


async def declared_listing(tools: Sequence[DeclaredTool]) -> ToolListing:
    """Declared tools as if their server had listed them."""

    async def page(_: str | None) -> Mapping[str, Any]:
        return {"tools": [tool.as_listed() for tool in tools]}

    return await read_listing(page)


async def with_usable_schemas(listing: ToolListing) -> ToolListing:
    """Skip tools with an unusable input schema (external references, invalid JSON Schema, or too
    costly), and give the reason."""
    schemas = JsonSchemaValidator()
    skipped = [
        SkippedTool(name=tool.name, reason=f"its input schema cannot be used: {problem}")
        async for tool in in_turns(listing.tools)
        if (problem := schemas.problem_with(tool.input_schema)) is not None
    ]
    if not skipped:
        return listing
    names = {tool.name for tool in skipped}
    return replace(
        listing,
        tools=tuple(tool for tool in listing.tools if tool.name not in names),
        skipped=_by_name(*listing.skipped, *skipped),
    )


def _odd_value(text: bytes) -> object:
    """JSON that strict parsers reject (invalid UTF-8, lone surrogates); None for what is none."""
    try:
        return json.loads(without_halves(json.dumps(json.loads(text.decode(errors="replace")), ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None


def _by_name(*skipped: SkippedTool) -> tuple[SkippedTool, ...]:
    return tuple(sorted(skipped, key=lambda one: (one.name, one.reason)))


def _invalid(detail: str) -> McpFailure:
    return McpFailure(McpFailureKind.INVALID_REPLY, detail)


def _read_tool(entry: object) -> McpToolDefinition | SkippedTool:
    if not isinstance(entry, dict) or not isinstance(name := entry.get("name"), str):
        return SkippedTool(name="", reason="it has no name")
    if not is_legal_mcp_name(name):
        shown = capped(clean(name), _MAX_SHOWN_NAME)
        return SkippedTool(name=shown, reason="its name is not 1 to 128 characters of A-Z a-z 0-9 _ . -")
    schema = entry.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return SkippedTool(name=name, reason="its input schema does not describe an object")
    if find_invalid_x_mcp_header(schema) is not None:
        return SkippedTool(name=name, reason="its input schema has an invalid x-mcp-header")
    output_schema = entry.get("outputSchema")
    if output_schema is not None and not isinstance(output_schema, dict):
        return SkippedTool(name=name, reason="its output schema is not an object")
    description = entry.get("description")
    hints = entry.get("annotations")
    definition = McpToolDefinition(
        name=name,
        description=clean(description) if isinstance(description, str) else "",
        input_schema=_with_type(schema),
        output_schema=output_schema,
        **_hints(hints if isinstance(hints, dict) else {}),
        display=read_display(entry),
    )
    too_large = _too_large(definition)
    return definition if too_large is None else SkippedTool(name=name, reason=too_large)


def _too_large(definition: McpToolDefinition) -> str | None:
    """Why the definition is too large for a prompt, if it is."""
    if len(definition.description) > MAX_DESCRIPTION:
        return f"its description has more than {MAX_DESCRIPTION:,} characters"
    for name, schema in (("input", definition.input_schema), ("output", definition.output_schema)):
        if size_within(schema, MAX_SCHEMA) > MAX_SCHEMA:
            return f"its {name} schema has more than {MAX_SCHEMA:,} characters"
    return None


def _size(definition: McpToolDefinition) -> int:
    """Characters of the definition, at most its length as JSON."""
    parts: list[JsonValue] = [definition.description, definition.input_schema, definition.output_schema]
    return size_within(parts, MAX_LISTING)


def _with_type(schema: JsonObject) -> JsonObject:
    return schema if "type" in schema else {"type": "object", **schema}


def _hints(annotations: Mapping[str, Any]) -> dict[str, Any]:
    destructive = annotations.get("destructiveHint")
    return {
        "read_only_hint": annotations.get("readOnlyHint") is True,
        "idempotent_hint": annotations.get("idempotentHint") is True,
        "destructive_hint": destructive if isinstance(destructive, bool) else None,
    }
