"""Builds the toolset of a run from the agent's native tools and the warm catalogs of its MCP servers.

A server that was never listed is asked now, all of them side by side, each within its own deadline; one that does not
answer is reported as unavailable and neither fails nor holds up the run any longer.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from application.mcp.ports import (
    ConnectionScope,
    McpCatalogStore,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpServerStore,
)
from application.mcp.server_catalogs import ServerCatalogs
from application.tools.ports import NativeTool
from application.tools.toolset import ServerOverview, Toolset
from domain.agents.agent import AgentConfig
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.server import McpServer
from domain.policy.allowlist import Allowlist, allows
from domain.tools.capabilities import NATIVE_TYPES, ToolType
from domain.tools.names import model_facing_name
from domain.tools.tool import McpBinding, Tool

logger = logging.getLogger(__name__)

INSTRUCTIONS_LIMIT_BYTES = 2048
"""How much of a trusted server's own instructions reaches the system prompt (row A13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCatalogSettings:
    """`discovery_timeout_s` bounds how long a run waits for a server that was never listed."""

    mcp_enabled: bool = True
    discovery_timeout_s: float = 10.0


class ToolCatalog:
    """Which tools an agent has, right now, without asking a server that was listed before."""

    def __init__(
        self,
        *,
        native_tools: Mapping[ToolType, NativeTool],
        displayable_tools: Mapping[ToolType, Tool],
        servers: McpServerStore,
        catalogs: McpCatalogStore,
        server_catalogs: ServerCatalogs,
        connections: McpConnections,
        settings: ToolCatalogSettings,
    ) -> None:
        self._native = {kind: native.tool for kind, native in native_tools.items()} | dict(displayable_tools)
        self._servers = servers
        self._catalogs = catalogs
        self._server_catalogs = server_catalogs
        self._connections = connections
        self._settings = settings

    @property
    def native_types(self) -> tuple[ToolType, ...]:
        """The native kinds that this installation offers."""
        return tuple(kind for kind in NATIVE_TYPES if kind in self._native)

    def native_tool(self, kind: ToolType) -> Tool:
        """The description of a native kind on offer. Raises KeyError for one that is not."""
        return self._native[kind]

    async def toolset(self, config: AgentConfig, scope: ConnectionScope, *, run_allowlist: Allowlist = None) -> Toolset:
        """The tools of `config` that both its allowlist and the run's allow."""
        slugs = sorted(config.mcp_servers)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._server(slug, scope)) for slug in slugs]
        found = [task.result() for task in tasks]

        def permitted(name: str) -> bool:
            return allows(config.tool_allowlist, name) and allows(run_allowlist, name)

        native = [self._native[kind] for kind in NATIVE_TYPES if kind in config.tools and kind in self._native]
        tools = {tool.name: tool for tool in native if permitted(tool.name)}
        problems: list[str] = []
        overviews: list[ServerOverview] = []
        for overview in found:
            kept: list[Tool] = []
            for tool in overview.tools:
                if not permitted(tool.name):
                    continue
                if tool.name in tools:
                    problems.append(f"{tool.name}: the name is already taken by another tool")
                    continue
                tools[tool.name] = tool
                kept.append(tool)
            overviews.append(
                ServerOverview(
                    slug=overview.slug,
                    tools=tuple(kept),
                    instructions=overview.instructions,
                    unavailable=overview.unavailable,
                    awaiting_approval=overview.awaiting_approval,
                )
            )
        return Toolset(tools=tuple(tools.values()), servers=tuple(overviews), problems=tuple(problems))

    async def catalog(self, server: McpServer, scope: ConnectionScope) -> McpCatalog:
        """The stored catalog of a server, or a fresh one if there is none of this version. Raises McpFailure."""
        stored = await self._catalogs.load(server.organization_id, server.id)
        if stored is not None and stored.server_version == server.version:
            return stored
        try:
            fresh = await self._discover(server, scope)
        except McpFailure:
            if stored is not None:
                return stored
            raise
        return await self._server_catalogs.keep(server, fresh)

    async def _discover(self, server: McpServer, scope: ConnectionScope) -> McpCatalog:
        try:
            return await self._connections.discover(server, scope, timeout_s=self._settings.discovery_timeout_s)
        except McpFailure:
            raise
        except Exception as error:
            logger.exception(
                "MCP discovery failed unexpectedly", extra={"server_id": server.id, "run_id": scope.run_id}
            )
            detail = "The MCP server could not be asked for its tools."
            raise McpFailure(McpFailureKind.NOT_CONNECTED, detail) from error

    async def _server(self, slug: str, scope: ConnectionScope) -> ServerOverview:
        if not self._settings.mcp_enabled:
            return ServerOverview(slug=slug, tools=(), unavailable="MCP disabled")
        server = await self._servers.get(scope.organization_id, slug)
        if server is None:
            return ServerOverview(slug=slug, tools=(), unavailable="there is no such MCP server")
        if not server.config.enabled:
            return ServerOverview(slug=slug, tools=(), unavailable="the MCP server is disabled")
        if server.lacks_installation:
            return ServerOverview(slug=slug, tools=(), unavailable="MCP server not installed")
        try:
            catalog = await self.catalog(server, scope)
        except McpFailure as failure:
            logger.warning(
                "MCP server unavailable at run start",
                extra={
                    "organization_id": scope.organization_id,
                    "run_id": scope.run_id,
                    "server_id": server.id,
                    "server": slug,
                    "failure": failure.kind.value,
                    "detail": failure.detail,
                    "stderr": failure.stderr[-500:],
                },
            )
            return ServerOverview(slug=slug, tools=(), unavailable=_for_prompt(failure))
        instructions = catalog.instructions if server.config.trusted else None
        return ServerOverview(
            slug=slug,
            tools=tuple(sorted((bound_tool(server, tool) for tool in catalog.usable), key=lambda tool: tool.name)),
            instructions=None if instructions is None else _capped(instructions),
            awaiting_approval=len(catalog.quarantined),
        )


def _for_prompt(failure: McpFailure) -> str:
    """Our own words: what a server says of an error has no place in the system prompt."""
    if failure.kind is McpFailureKind.SERVER_ERROR:
        return "the MCP server answered with an error"
    return failure.detail


def _capped(instructions: str) -> str:
    return instructions.encode("utf-8", "replace")[:INSTRUCTIONS_LIMIT_BYTES].decode("utf-8", "ignore")


def bound_tool(server: McpServer, definition: McpToolDefinition) -> Tool:
    """A server's tool as runs know it. Its hints count only if the server is trusted (MCP server/tools,
    annotations)."""
    return Tool(
        name=model_facing_name(server.config.slug, definition.name),
        type=ToolType.MCP_TOOL,
        description=definition.description,
        parameters=definition.input_schema,
        mcp=McpBinding(
            server_id=server.id,
            server_slug=server.config.slug,
            tool_name=definition.name,
            output_schema=definition.output_schema,
            timeout_s=server.config.timeout_s,
            definition=definition,
        ),
        repeatable=server.config.trusted and (definition.read_only_hint or definition.idempotent_hint),
    )
