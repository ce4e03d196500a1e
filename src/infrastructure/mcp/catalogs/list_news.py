"""Parses list-changed notifications of both generations (MCP server/tools, server/resources,
server/prompts)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from mcp import ClientSession
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged, listen
from mcp.types import PromptListChangedNotification, ResourceListChangedNotification, ToolListChangedNotification

from application.mcp.news import ListKind

_KINDS: Mapping[type, ListKind] = {
    ToolsListChanged: ListKind.TOOLS,
    ResourcesListChanged: ListKind.RESOURCES,
    PromptsListChanged: ListKind.PROMPTS,
    ToolListChangedNotification: ListKind.TOOLS,
    ResourceListChangedNotification: ListKind.RESOURCES,
    PromptListChangedNotification: ListKind.PROMPTS,
}


def changed_list(message: IncomingMessage) -> ListKind | None:
    """The list that a legacy server reports as changed; None for other messages."""
    return _KINDS.get(type(message))


@asynccontextmanager
async def listening(client: ClientSession, kinds: frozenset[ListKind]) -> AsyncIterator[AsyncIterator[ListKind]]:
    """Changes of lists that a modern server reports, from entering the context on. Raises as the
    SDK's `listen`."""
    async with listen(
        client,
        tools_list_changed=ListKind.TOOLS in kinds,
        resources_list_changed=ListKind.RESOURCES in kinds,
        prompts_list_changed=ListKind.PROMPTS in kinds,
    ) as subscription:
        yield (_KINDS[type(event)] async for event in subscription)
