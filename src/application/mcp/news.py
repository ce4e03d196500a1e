"""Ports for change notifications of servers (MCP server/tools, server/resources,
server/prompts)."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from application.mcp.ports import ConnectionScope
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServer


class ListKind(StrEnum):
    """Lists that change; values are those of the protocol's notifications."""

    TOOLS = "tools"
    RESOURCES = "resources"
    PROMPTS = "prompts"


Listed = Callable[[OrganizationId, McpServerId, str | None, ListKind], None]
"""Called when a list of a server changed, on the connection of the given thread, run or session
(None: shared)."""

Release = Callable[[], None]
"""End a watch. Later calls do nothing."""


class McpResourceNews(Protocol):
    """Watches single resources on the connections used for calls."""

    def watch(self, server: McpServer, scope: ConnectionScope, uri: str, tell: Callable[[str], None]) -> Release:
        """Call `tell` on the event loop with the URI of each update of the resource or one below
        it.

        - After a lost connection it is called too, since updates may have been missed.
        - Returns at once; the server is contacted in the background, once for all watchers. Never
          raises.
        """
        ...
