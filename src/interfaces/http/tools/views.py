"""Tools as JSON."""

from collections.abc import Mapping
from typing import TypedDict

from application.tools.list_tools import ToolListing
from domain.threads.message_json import timestamp


class ToolView(TypedDict):
    """A tool: `name` is what models call it, `server` the slug of its MCP server, `health` where that stands, `available`
    whether a call would be tried now; its definition is as of `as_of`, `age_s` seconds ago."""

    name: str
    type: str
    description: str
    parameters: Mapping[str, object]
    server: str | None
    health: str
    available: bool
    as_of: str | None
    age_s: float | None


class ToolsView(TypedDict):
    """All tools; `next_cursor` is always null."""

    data: list[ToolView]
    next_cursor: None


def tool_view(listing: ToolListing) -> ToolView:
    """A tool as JSON."""
    return {
        "name": listing.tool.name,
        "type": listing.tool.type.value,
        "description": listing.tool.description,
        "parameters": listing.tool.parameters,
        "server": listing.server,
        "health": listing.health,
        "available": listing.available,
        "as_of": None if listing.as_of is None else timestamp(listing.as_of),
        "age_s": listing.age_s,
    }
