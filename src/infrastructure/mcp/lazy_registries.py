"""MCP registries, loaded by the first read: the HTTP client would delay startup."""

from collections.abc import Callable
from typing import Protocol

from application.mcp.registries import McpRegistries
from application.system.lazy import LazyClosable
from domain.json_value import JsonObject


class OpenRegistries(McpRegistries, Protocol):
    """The loaded registries."""

    async def close(self) -> None:
        """Cancel requests in progress."""
        ...


class LazyRegistries(LazyClosable[OpenRegistries]):
    """`McpRegistries` whose names are known before."""

    def __init__(self, load: Callable[[], OpenRegistries], *, names: tuple[str, ...]) -> None:
        super().__init__(load)
        self.names = names

    async def search(self, registry: str, search: str, *, limit: int, cursor: str | None) -> JsonObject:
        return await (await self.warm()).search(registry, search, limit=limit, cursor=cursor)

    async def version(self, registry: str, name: str, version: str) -> JsonObject | None:
        return await (await self.warm()).version(registry, name, version)
