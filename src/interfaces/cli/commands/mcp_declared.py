"""Definitions of tools in a file: as the API takes them, or as `tools/list` of MCP has them."""

from pathlib import Path

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.definition_file import load_value
from interfaces.cli.failures import BadUsage

_AS_LISTED = {"inputSchema": "parameters", "outputSchema": "output_schema"}
_LEFT_OUT = ("title", "annotations", "icons", "_meta")
"""Parts of a listing that describe a tool for clients."""


def tools_in(path: Path) -> list[JsonValue]:
    """The tools of the API. The file is a list, or a mapping whose `tools` is one. Raises
    BadUsage."""
    found = load_value(path)
    if isinstance(found, dict):
        found = found.get("tools")
    if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
        raise BadUsage(
            f"{path} must be a list of tools, each with name, description and parameters (a JSON Schema), or a mapping "
            "with such a list under tools."
        )
    return [_as_the_api_takes_it(entry) for entry in found if isinstance(entry, dict)]


def _as_the_api_takes_it(entry: JsonObject) -> JsonObject:
    return {_AS_LISTED.get(key, key): value for key, value in entry.items() if key not in _LEFT_OUT}
