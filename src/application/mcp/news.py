"""What servers say of their own accord about what they have (MCP server/tools, server/resources, server/prompts): the port."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from application.mcp.ports import ConnectionScope
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServer


class ListKind(StrEnum):
    """Lists that change; values are those in the names of the protocol's notifications."""

    TOOLS = "tools"
    RESOURCES = "resources"
    PROMPTS = "prompts"


Listed = Callable[[OrganizationId, McpServerId, str | None, ListKind], None]
"""A list of a server changed, on a connection of the thread, run or session with that id, or of all the organization."""

Release = Callable[[], None]
"""Ends a watch, once."""


class McpResourceNews(Protocol):
    """Servers asked to tell of changes of single resources, on the connections that calls use."""

    def watch(self, server: McpServer, scope: ConnectionScope, uri: str, tell: Callable[[str], None]) -> Release:
        """Have `tell` called on the event loop with the server's name for what was updated: the resource, or one below it;
        also once the connection was lost and is back, since something may have been missed. Returns at once: the server is
        asked in the background, as long as it takes, by as many as watch the same only once. Never raises."""
        ...
