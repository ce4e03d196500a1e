"""Tools of workflow runs for agents' runs and gateway sessions, and calls of components."""

from application.secrets.ports import SecretStore
from application.system.lru import LruCache
from application.system.ports import Clock
from application.tools.agents_as_tools import PARAMETERS
from application.tools.ports import Box, NativeToolContext, NativeToolError, NativeToolOutput
from application.tools.server_tools import inline_overview
from application.tools.toolset import ServerOverview
from application.tools.wired_tools import Wired, WiredServer
from application.workflows.http_request import HttpRequestFailed, HttpRequests, credential_names
from application.workflows.ports import WorkflowToolStore
from application.workflows.sealed_tools import SealedAgent, SealedComponent, SealedNativeTool, SealedServer
from application.workflows.tool_step import inline_server
from domain.errors import ServiceError
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from domain.mcp.server import McpServerConfig
from domain.secrets.secret import SECRET_UNAVAILABLE
from domain.tools.capabilities import ToolType
from domain.tools.tool import AgentBinding, ComponentBinding, Tool
from domain.tools.wired import RegisteredTool, WiredNodes
from domain.workflows.graph import NodeKind
from domain.workflows.templates import INPUTS

_CAPACITY = 1_000
_EXPIRED = (
    "The tool was not called: what its workflow run bound to it has expired. Continue without it; to use it, the workflow "
    "has to be started again."
)
_SAID_CHARACTERS = 1_000
"""Most characters of an error body that the model gets."""


class StoredWiredTools:
    """The `WiredTools` port. Registered tools never change during a run, so they are cached by
    nodes. The cache holds bound values in encrypted form only, and no secrets."""

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
        native: list[ToolType] = []
        components: list[Tool] = []
        agents: list[Tool] = []
        servers: list[WiredServer] = []
        inline: list[ServerOverview] = []
        for tool in found:
            if tool.kind == NodeKind.HTTP_REQUEST.value:
                components.append(self._component(tool))
                continue
            if tool.kind == NodeKind.NATIVE_TOOL.value:
                native.append(SealedNativeTool.opened(tool.sealed, self._box).tool)
                continue
            if tool.kind == NodeKind.AGENT.value:
                agents.append(_agent(tool, SealedAgent.opened(tool.sealed, self._box)))
                continue
            server = SealedServer.opened(tool.sealed, self._box)
            if server.inline is None:
                only = None if server.tools is None else frozenset(server.tools)
                servers.append(WiredServer(slug=server.slug, tools=only, team=server.team))
            else:
                inline.append(_inline(tool, server.inline, server))
        there = {tool.node_id for tool in found}
        return Wired(
            native=tuple(native),
            components=tuple(components),
            agents=tuple(agents),
            servers=tuple(servers),
            inline=tuple(inline),
            missing=tuple(node_id for node_id in nodes.node_ids if node_id not in there),
        )

    def _component(self, tool: RegisteredTool) -> Tool:
        component = SealedComponent.opened(tool.sealed, tool.bound, self._box)
        return Tool(
            name=component.name,
            type=ToolType.MCP_TOOL,
            description=component.description,
            parameters=component.parameters,
            component=ComponentBinding(
                workflow_run_id=tool.workflow_run_id,
                node_id=tool.node_id,
                sealed=tool.sealed,
                bound=tool.bound,
                expires_at=tool.expires_at,
            ),
            repeatable=component.config.idempotent,
        )


class CallComponent:
    """The `ComponentTools` port: an HTTP request with the model's arguments as exposed inputs.
    Rules: those of `HttpRequests`, and:
    - Arguments never replace bound inputs.
    - Secrets are read by each call, so that a new value of a secret counts at once.
    - A tool that has expired is not called.
    """

    def __init__(self, *, requests: HttpRequests, secrets: SecretStore, box: Box, clock: Clock) -> None:
        self._requests = requests
        self._secrets = secrets
        self._box = box
        self._clock = clock

    async def call(
        self, binding: ComponentBinding, arguments: JsonObject, context: NativeToolContext
    ) -> NativeToolOutput:
        """Raises NativeToolError."""
        if binding.expires_at is not None and self._clock.now() >= binding.expires_at:
            raise NativeToolError("wired_tool_expired", _EXPIRED)
        component = SealedComponent.opened(binding.sealed, binding.bound, self._box)
        names = {*component.secrets.values(), *credential_names(component.config)}
        secrets = {name: await self._secret(context.organization_id, name) for name in sorted(names)}
        given = component.parameters.get("properties")
        exposed = given if isinstance(given, dict) else {}
        inputs = component.inputs | {name: value for name, value in arguments.items() if name in exposed}
        inputs |= {name: secrets[secret] for name, secret in component.secrets.items()}
        timeout_s = min(context.timeout_s, component.timeout_s or context.timeout_s)
        try:
            output = await self._requests.send(
                component.config,
                {**component.values, INPUTS: inputs},
                credentials=secrets,
                hidden=component.hidden,
                timeout_s=timeout_s,
            )
        except HttpRequestFailed as failure:
            said = failure.said.strip()[:_SAID_CHARACTERS]
            raise NativeToolError(failure.code, f"{failure.detail} {said}" if said else failure.detail) from failure
        return NativeToolOutput(value=output)

    async def _secret(self, organization_id: OrganizationId, name: str) -> str:
        try:
            value = await self._secrets.value(organization_id, name)
        except ServiceError as error:
            if error.code != SECRET_UNAVAILABLE:
                raise
            raise NativeToolError(error.code, error.detail) from error
        if value is None:
            raise NativeToolError("secret_missing", f"There is no secret {name!r}.")
        return value


def _agent(tool: RegisteredTool, kept: SealedAgent) -> Tool:
    return Tool(
        name=kept.tool_name,
        type=ToolType.AGENT,
        description=kept.description,
        parameters=PARAMETERS,
        agent=AgentBinding(
            agent_id=kept.agent_id,
            name=kept.name,
            timeout_s=kept.timeout_s,
            wired=WiredNodes(workflow_run_id=tool.workflow_run_id, node_ids=kept.nodes),
        ),
        repeatable=True,  # a call that is made again finds its run
    )


def _inline(tool: RegisteredTool, settings: McpServerConfig, kept: SealedServer) -> ServerOverview:
    server = inline_server(tool.organization_id, tool.workflow_run_id, tool.node_id, settings, at=tool.registered_at)
    return inline_overview(server, kept.definitions, kept.instructions)
