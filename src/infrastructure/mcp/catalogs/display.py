"""Parses the display data of tools (MCP server/tools, schema `Icon`), with size limits. No I/O."""

import json
from collections.abc import Mapping
from typing import Any

from domain.json_value import JsonObject, JsonValue
from infrastructure.mcp.text import capped, clean, clean_value

_MAX_TITLE = 128
_MAX_ICONS = 8
_MAX_BYTES = 16 * 1024
"""Limit for icons, and for `_meta`; a larger value is left out."""
_ICON_SCHEMES = ("https://", "data:image/")


def read_display(entry: Mapping[str, Any]) -> JsonObject:
    """The valid parts of a tool's `title`, `icons`, `annotations` (`title`, `openWorldHint`) and
    `_meta`, or of a `_meta` that is too large only `ui`, which says who may call the tool."""
    display: JsonObject = {}
    if (title := _title(entry.get("title"))) is not None:
        display["title"] = title
    if icons := _within(_icons(entry.get("icons"))):
        display["icons"] = icons
    if annotations := _annotations(entry.get("annotations")):
        display["annotations"] = annotations
    meta = entry.get("_meta")
    if isinstance(meta, dict) and (kept := _within(clean_value(meta)) or _within(_ui(meta))):
        display["_meta"] = kept
    return display


def _title(value: object) -> str | None:
    return capped(clean(value).strip(), _MAX_TITLE) or None if isinstance(value, str) else None


def _annotations(value: object) -> JsonObject:
    hints = value if isinstance(value, dict) else {}
    kept: JsonObject = {}
    if (title := _title(hints.get("title"))) is not None:
        kept["title"] = title
    if isinstance(is_open := hints.get("openWorldHint"), bool):
        kept["openWorldHint"] = is_open
    return kept


def _icons(value: object) -> JsonValue:
    """Icons that clients can load without executing anything: https or data URLs."""
    if not isinstance(value, list):
        return None
    return [
        clean_value({key: part for key, part in icon.items() if key in ("src", "mimeType", "sizes", "theme")})
        for icon in value[:_MAX_ICONS]
        if isinstance(icon, dict) and isinstance(src := icon.get("src"), str) and src.startswith(_ICON_SCHEMES)
    ]


def _ui(meta: Mapping[str, Any]) -> JsonValue:
    return {"ui": clean_value(meta["ui"])} if "ui" in meta else None


def _within(value: JsonValue) -> JsonValue:
    return value if value and len(json.dumps(value)) <= _MAX_BYTES else None
