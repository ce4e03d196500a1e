"""Names of the two meta tools that a run with too many MCP tools receives in their place. A call of
`call_tool` is resolved to the tool that it names before it is routed."""

from domain.json_value import JsonObject
from domain.threads.message import ToolUse

SEARCH_TOOLS = "search_tools"
CALL_TOOL = "call_tool"
META_NAMES = frozenset({SEARCH_TOOLS, CALL_TOOL})


def named_tool(params: JsonObject) -> str | None:
    """The tool named in the arguments of `call_tool`."""
    name = params.get("name")
    return name if isinstance(name, str) else None


def called_name(use: ToolUse) -> str:
    """The name of the resolved tool."""
    return (named_tool(use.params) or use.name) if use.name == CALL_TOOL else use.name
