"""The two tools that stand for many: a run with too many MCP tools to list is given these to find and call them with.

They are names only, resolved before anything is routed: a call of `call_tool` is a call of the tool it names.
"""

from domain.json_value import JsonObject
from domain.threads.message import ToolUse

SEARCH_TOOLS = "search_tools"
CALL_TOOL = "call_tool"


def named_tool(params: JsonObject) -> str | None:
    """The tool that the arguments of `call_tool` name."""
    name = params.get("name")
    return name if isinstance(name, str) else None


def called_name(use: ToolUse) -> str:
    """The name of the tool that is meant, whichever way it was called."""
    return (named_tool(use.params) or use.name) if use.name == CALL_TOOL else use.name
