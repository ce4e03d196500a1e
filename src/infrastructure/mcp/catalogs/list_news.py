"""Changes of a server's lists, as both generations tell of them (MCP server/tools, server/resources, server/prompts)."""

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
    """Of which list an older server says that it changed; None if it says something else."""
    return _KINDS.get(type(message))


@asynccontextmanager
async def listening(client: ClientSession, kinds: frozenset[ListKind]) -> AsyncIterator[AsyncIterator[ListKind]]:
    """The lists that change at a modern server, from entering the context on. Raises as the SDK's `listen` does."""
    async with listen(
        client,
        tools_list_changed=ListKind.TOOLS in kinds,
        resources_list_changed=ListKind.RESOURCES in kinds,
        prompts_list_changed=ListKind.PROMPTS in kinds,
    ) as subscription:
        yield (_KINDS[type(event)] async for event in subscription)
