"""Kinds of tools, and where their calls are settled."""

from enum import StrEnum


class ToolType(StrEnum):
    """The tool kinds. Values are part of the public contract."""

    CODE_EXECUTION = "code_execution"
    WEBSITE_CONTENT = "website_content"
    SEND_EMAIL = "send_email"
    CREATE_CALENDAR_EVENT = "create_calendar_event"
    INTERNET_SEARCH = "internet_search"
    SOURCE_QUERY = "source_query"
    MCP_TOOL = "mcp_tool"
    AGENT = "agent"
    CLIENT_TOOL = "client_tool"
    CLIENT_STATE = "client_state"


class ToolCapability(StrEnum):
    """Where a call is settled: `displayable` by the client, `executable` by Dragoman."""

    DISPLAYABLE = "displayable"
    EXECUTABLE = "executable"


DISPLAYABLE_TYPES = frozenset({ToolType.SEND_EMAIL, ToolType.CREATE_CALENDAR_EVENT, ToolType.CLIENT_TOOL})
NATIVE_TYPES = tuple(
    kind
    for kind in ToolType
    if kind not in (ToolType.MCP_TOOL, ToolType.AGENT, ToolType.CLIENT_TOOL, ToolType.CLIENT_STATE)
)


def capability_of(tool_type: ToolType) -> ToolCapability:
    return ToolCapability.DISPLAYABLE if tool_type in DISPLAYABLE_TYPES else ToolCapability.EXECUTABLE
