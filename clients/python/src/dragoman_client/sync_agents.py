"""Agents and MCP servers of the asynchronous client. `sync_agents.py` is made from this file by
`make clients`; change this one."""

from collections.abc import Iterator
from typing import Unpack, cast
from urllib.parse import quote

from dragoman_client import models
from dragoman_client.sync_connection import Connection
from dragoman_client.errors import NotFound


class Agents:
    """Agents, by id or name."""

    def __init__(self, client: Connection) -> None:
        self._client = client

    def create(self, **body: Unpack[models.CreateAgentBody]) -> models.SavedAgentView:
        return cast("models.SavedAgentView", self._client.request("POST", "/agents", json=body))

    def get(self, agent: str) -> models.AgentView:
        return cast("models.AgentView", self._client.request("GET", f"/agents/{part(agent)}"))

    def update(self, agent: str, **changes: Unpack[models.UpdateAgentBody]) -> models.SavedAgentView:
        """Change the given fields."""
        saved = self._client.request("PATCH", f"/agents/{part(agent)}", json=changes)
        return cast("models.SavedAgentView", saved)

    def apply(self, **body: Unpack[models.CreateAgentBody]) -> models.SavedAgentView:
        """Create the agent, or change the one of that name."""
        try:
            self.get(body["name"])
        except NotFound:
            return self.create(**body)
        return self.update(body["name"], **cast("models.UpdateAgentBody", body))

    def delete(self, agent: str) -> None:
        self._client.request("DELETE", f"/agents/{part(agent)}")

    def list(self) -> Iterator[models.AgentView]:
        return self._client.pages("/agents")


class Servers:
    """MCP servers, by id or slug."""

    def __init__(self, client: Connection) -> None:
        self._client = client

    def create(self, **body: Unpack[models.McpServerBody]) -> models.McpServerView:
        return cast("models.McpServerView", self._client.request("POST", "/mcp-servers", json=body))

    def get(self, server: str) -> models.McpServerView:
        return cast("models.McpServerView", self._client.request("GET", f"/mcp-servers/{part(server)}"))

    def update(self, server: str, **changes: Unpack[models.UpdateMcpServerBody]) -> models.McpServerView:
        """Change the given fields."""
        saved = self._client.request("PATCH", f"/mcp-servers/{part(server)}", json=changes)
        return cast("models.McpServerView", saved)

    def apply(self, **body: Unpack[models.McpServerBody]) -> models.McpServerView:
        """Register the server, or change the one with that slug."""
        try:
            self.get(body["slug"])
        except NotFound:
            return self.create(**body)
        return self.update(body["slug"], **cast("models.UpdateMcpServerBody", body))

    def test(self, server: str) -> models.TestResultView:
        """Connect to the server and list its tools."""
        tested = self._client.request("POST", f"/mcp-servers/{part(server)}/test")
        return cast("models.TestResultView", tested)

    def delete(self, server: str) -> None:
        self._client.request("DELETE", f"/mcp-servers/{part(server)}")

    def list(self) -> Iterator[models.McpServerView]:
        return self._client.pages("/mcp-servers")


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
