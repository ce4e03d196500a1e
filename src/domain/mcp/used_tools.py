"""Which of the tools that a server lists are used."""

from collections.abc import Iterable

from domain.mcp.catalog import McpToolDefinition, SkippedTool
from domain.mcp.server import McpServerConfig

NOT_USED = "not among the `tools` of the server's settings"


def used_tools(
    config: McpServerConfig, listed: Iterable[McpToolDefinition]
) -> tuple[tuple[McpToolDefinition, ...], tuple[SkippedTool, ...]]:
    """The tools that are used, and the others with the reason."""
    used: list[McpToolDefinition] = []
    left_out: list[SkippedTool] = []
    for tool in listed:
        if config.offers(tool.name):
            used.append(tool)
        else:
            left_out.append(SkippedTool(name=tool.name, reason=NOT_USED))
    return tuple(used), tuple(left_out)
