"""Meta tools that replace a large number of MCP tools: `search_tools` finds tools, `call_tool`
calls one."""

import json
from collections.abc import Callable

from application.tools.result_text import TEXT_LIMIT_BYTES, cut, value_text
from domain.json_value import JsonObject, JsonValue
from domain.tools.capabilities import ToolType
from domain.tools.meta_tools import CALL_TOOL, SEARCH_TOOLS
from domain.tools.result import ToolResult
from domain.tools.tool import Tool
from domain.tools.tool_index import ToolIndex

DEFAULT_LIMIT = 5
MAX_LIMIT = 20
SHOWN_BYTES = 48 * 1024
"""Limit of results shown in full; for further tools only the names are shown."""

_SEARCH: JsonObject = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": "What the tool should do, in a few words.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "default": DEFAULT_LIMIT,
            "description": "How many tools to show at most.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
_CALL: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "The tool's name, as search_tools shows it."},
        "arguments": {"type": "object", "description": "Its arguments, as its parameters describe them."},
    },
    "required": ["name"],
    "additionalProperties": False,
}
# Meta tools have the type of MCP tools but no binding; calls are resolved before routing.
META_TOOLS = (
    Tool(
        name=SEARCH_TOOLS,
        type=ToolType.MCP_TOOL,
        description="Finds tools of the MCP servers by what they do. Shows their names, descriptions and parameters.",
        parameters=_SEARCH,
    ),
    Tool(
        name=CALL_TOOL,
        type=ToolType.MCP_TOOL,
        description="Calls a tool of an MCP server by the name that search_tools shows.",
        parameters=_CALL,
    ),
)


def own_name(tool: Tool) -> str:
    return tool.name


def found_tools(index: ToolIndex, params: JsonObject, name_of: Callable[[Tool], str] = own_name) -> ToolResult:
    """The result of `search_tools` for valid arguments: JSON of the tools, best first, by the names
    that their caller uses."""
    query, limit = params["query"], params.get("limit", DEFAULT_LIMIT)
    assert isinstance(query, str)
    assert isinstance(limit, int | float)
    found = index.search(query, int(limit))
    if not found:
        return ToolResult.succeeded("No tool fits that. Try other words.")
    shown: list[JsonValue] = []
    further: list[JsonValue] = []
    left = SHOWN_BYTES
    for tool in found:
        entry: JsonObject = {"name": name_of(tool), "description": tool.description, "parameters": tool.parameters}
        left -= len(json.dumps(entry))
        if left >= 0 or not shown:
            shown.append(entry)
        else:
            further.append(name_of(tool))
    answer: JsonObject = {"tools": shown}
    if further:
        answer["further_tools"] = further
        answer["note"] = "The further tools are too large to show beside these; search for one of them by its name."
    return ToolResult.succeeded(cut(value_text(answer), TEXT_LIMIT_BYTES))
