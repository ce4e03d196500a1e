"""Tools of workflow runs for agents' runs and gateway sessions, and calls of components."""

from application.system.lru import LruCache
from application.tools.ports import Box, NativeToolContext, NativeToolError, NativeToolOutput
from application.tools.server_tools import inline_overview
from application.tools.toolset import ServerOverview
from application.tools.wired_tools import Wired, WiredServer
from application.workflows.http_request import HttpRequestFailed, HttpRequests
from application.workflows.ports import WorkflowToolStore
from application.workflows.sealed_tools import SealedComponent, SealedServer
from application.workflows.tool_step import inline_server
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from domain.mcp.server import McpServerConfig
from domain.tools.capabilities import ToolType
from domain.tools.tool import ComponentBinding, Tool
from domain.tools.wired import RegisteredTool, WiredNodes
from domain.workflows.graph import NodeKind
from domain.workflows.templates import INPUTS

_CAPACITY = 1_000
_SAID_CHARACTERS = 1_000
"""Most characters of an error body that the model gets."""


class StoredWiredTools:
    """The `WiredTools` port. Registered tools never change during a run, so they are cached by
    nodes. The cache holds credentials in encrypted form only."""

    def __init__(self, *, tools: WorkflowToolStore, box: Box) -> None:
        self._tools = tools
        self._box = box
        self._kept: LruCache[tuple[OrganizationId, WiredNodes], Wired] = LruCache(_CAPACITY)

    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> Wired:
        key = (organization_id, nodes)
        wired = self._kept.get(key)
        if wired is None:
            found = await self._tools.of(organization_id, nodes)
            wired = self._made(nodes, found)
            if not wired.missing:
                self._kept.put(key, wired)
        return wired

    def _made(self, nodes: WiredNodes, found: tuple[RegisteredTool, ...]) -> Wired:
        components: list[Tool] = []
        servers: list[WiredServer] = []
        inline: list[ServerOverview] = []
        for tool in found:
            if tool.kind == NodeKind.HTTP_REQUEST.value:
                components.append(self._component(tool))
                continue
            server = SealedServer.opened(tool.sealed, self._box)
            if server.inline is None:
                only = None if server.tools is None else frozenset(server.tools)
                servers.append(WiredServer(slug=server.slug, tools=only))
            else:
                inline.append(_inline(tool, server.inline, server))
        there = {tool.node_id for tool in found}
        return Wired(
            components=tuple(components),
            servers=tuple(servers),
            inline=tuple(inline),
            missing=tuple(node_id for node_id in nodes.node_ids if node_id not in there),
        )

    def _component(self, tool: RegisteredTool) -> Tool:
        component = SealedComponent.opened(tool.sealed, self._box)
        return Tool(
            name=component.name,
            type=ToolType.MCP_TOOL,
            description=component.description,
            parameters=component.parameters,
            component=ComponentBinding(workflow_run_id=tool.workflow_run_id, node_id=tool.node_id, sealed=tool.sealed),
            repeatable=component.config.idempotent,
        )


class CallComponent:
    """The `ComponentTools` port: an HTTP request with the model's arguments as exposed inputs.
    Rules: those of `HttpRequests`; arguments never replace bound inputs."""

    def __init__(self, *, requests: HttpRequests, box: Box) -> None:
        self._requests = requests
        self._box = box

    async def call(
        self, binding: ComponentBinding, arguments: JsonObject, context: NativeToolContext
    ) -> NativeToolOutput:
        """Raises NativeToolError."""
        component = SealedComponent.opened(binding.sealed, self._box)
        given = component.parameters.get("properties")
        exposed = given if isinstance(given, dict) else {}
        inputs = component.inputs | {name: value for name, value in arguments.items() if name in exposed}
        timeout_s = min(context.timeout_s, component.timeout_s or context.timeout_s)
        try:
            output = await self._requests.send(
                component.config,
                {**component.values, INPUTS: inputs},
                credentials=component.credentials,
                hidden=component.hidden,
                timeout_s=timeout_s,
            )
        except HttpRequestFailed as failure:
            said = failure.said.strip()[:_SAID_CHARACTERS]
            raise NativeToolError(failure.code, f"{failure.detail} {said}" if said else failure.detail) from failure
        return NativeToolOutput(value=output)


def _inline(tool: RegisteredTool, settings: McpServerConfig, kept: SealedServer) -> ServerOverview:
    server = inline_server(tool.organization_id, tool.workflow_run_id, tool.node_id, settings, at=tool.registered_at)
    return inline_overview(server, kept.definitions, kept.instructions)
