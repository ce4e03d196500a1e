"""Agents and MCP servers of the asynchronous client. `sync_agents.py` is made from this file by
`make clients`; change this one."""

from collections.abc import AsyncIterator
from typing import Unpack, cast
from urllib.parse import quote

from dragoman_client import models
from dragoman_client.aio_connection import AsyncConnection
from dragoman_client.errors import NotFound


class AsyncAgents:
    """Agents, by id or name."""

    def __init__(self, client: AsyncConnection) -> None:
        self._client = client

    async def create(self, **body: Unpack[models.CreateAgentBody]) -> models.SavedAgentView:
        return cast("models.SavedAgentView", await self._client.request("POST", "/agents", json=body))

    async def get(self, agent: str) -> models.AgentView:
        return cast("models.AgentView", await self._client.request("GET", f"/agents/{part(agent)}"))

    async def update(self, agent: str, **changes: Unpack[models.UpdateAgentBody]) -> models.SavedAgentView:
        """Change the given fields."""
        saved = await self._client.request("PATCH", f"/agents/{part(agent)}", json=changes)
        return cast("models.SavedAgentView", saved)

    async def apply(self, **body: Unpack[models.CreateAgentBody]) -> models.SavedAgentView:
        """Create the agent, or change the one of that name."""
        try:
            await self.get(body["name"])
        except NotFound:
            return await self.create(**body)
        return await self.update(body["name"], **cast("models.UpdateAgentBody", body))

    async def delete(self, agent: str) -> None:
        await self._client.request("DELETE", f"/agents/{part(agent)}")

    def list(self) -> AsyncIterator[models.AgentView]:
        return self._client.pages("/agents")


class AsyncServers:
    """MCP servers, by id or slug."""

    def __init__(self, client: AsyncConnection) -> None:
        self._client = client

    async def create(self, **body: Unpack[models.McpServerBody]) -> models.McpServerView:
        return cast("models.McpServerView", await self._client.request("POST", "/mcp-servers", json=body))

    async def get(self, server: str) -> models.McpServerView:
        return cast("models.McpServerView", await self._client.request("GET", f"/mcp-servers/{part(server)}"))

    async def update(self, server: str, **changes: Unpack[models.UpdateMcpServerBody]) -> models.McpServerView:
        """Change the given fields."""
        saved = await self._client.request("PATCH", f"/mcp-servers/{part(server)}", json=changes)
        return cast("models.McpServerView", saved)

    async def apply(self, **body: Unpack[models.McpServerBody]) -> models.McpServerView:
        """Register the server, or change the one with that slug."""
        try:
            await self.get(body["slug"])
        except NotFound:
            return await self.create(**body)
        return await self.update(body["slug"], **cast("models.UpdateMcpServerBody", body))

    async def test(self, server: str) -> models.TestResultView:
        """Connect to the server and list its tools."""
        tested = await self._client.request("POST", f"/mcp-servers/{part(server)}/test")
        return cast("models.TestResultView", tested)

    async def delete(self, server: str) -> None:
        await self._client.request("DELETE", f"/mcp-servers/{part(server)}")

    def list(self) -> AsyncIterator[models.McpServerView]:
        return self._client.pages("/mcp-servers")


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
