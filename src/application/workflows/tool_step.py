"""Nodes in tool mode: executing one registers a tool of its workflow run."""

import logging
from datetime import datetime, timedelta

from application.agents.agent_lookup import agent_of_workflow
from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.mcp.catalog_reader import DEFAULT_DEADLINE_S, CatalogReader
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpConnections, McpFailure, McpServerStore
from application.system.ports import Clock
from application.tools.agents_as_tools import agent_tool
from application.tools.ports import Box
from application.workflows.http_request import credential_names, default_values
from application.workflows.http_step import BoundInputs
from application.workflows.node_execution import NodeContext, NodeFailed, Registered
from application.workflows.sealed_tools import SealedAgent, SealedComponent, SealedNativeTool, SealedServer
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import person_of
from domain.ids import McpServerId, OrganizationId, WorkflowRunId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer, McpServerConfig
from domain.secrets.secret import SecretRef
from domain.teams import may_use
from domain.tools.wired import RegisteredTool
from domain.workflows.execution import NodeRun
from domain.workflows.graph import (
    AgentNodeConfig,
    HttpRequestConfig,
    McpServerNodeConfig,
    NativeToolConfig,
    ToolSettings,
)
from domain.workflows.plan import Plan, PlannedNode
from domain.workflows.run import WorkflowRun
from domain.workflows.templates import Reference, placeholders

logger = logging.getLogger(__name__)


class ToolStep:
    """Rules:
    - Bound inputs are read at execution, stored encrypted until `tool_ttl_s` have passed, and never
      shown to a model.
    - Secrets must exist. They are stored by name, and read by each call.
    - A server must exist and list the wired tools.
    - An agent must exist and be enabled. As a tool it has the tools that are wired to its node.
    - Agents and servers belong to the team of the workflow run or to the organization.
    - An inline server's tools are stored with it; its connections close when the run ends.
    """

    def __init__(
        self,
        *,
        inputs: BoundInputs,
        agents: AgentStore,
        organizations: OrganizationStore,
        servers: McpServerStore,
        catalogs: CatalogReader,
        connections: McpConnections,
        switch: McpSwitch,
        box: Box,
        clock: Clock,
        tool_ttl_s: float,
    ) -> None:
        self._tool_ttl = timedelta(seconds=tool_ttl_s)
        self._inputs = inputs
        self._agents = agents
        self._organizations = organizations
        self._servers = servers
        self._catalogs = catalogs
        self._connections = connections
        self._switch = switch
        self._box = box
        self._clock = clock

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Registered:
        """Register the tool. Raises NodeFailed."""
        now, bound, expires_at = self._clock.now(), None, None
        match node.config:
            case HttpRequestConfig(tool=ToolSettings() as settings) as request:
                component = await self._component(node, request, settings, context)
                sealed, bound = component.sealed(self._box), component.sealed_values(self._box)
                expires_at = now + self._tool_ttl
            case McpServerNodeConfig() as config:
                sealed = (await self._server(node, config, context, now)).sealed(self._box)
            case AgentNodeConfig() as config:
                sealed = (await self._agent(node, config, context)).sealed(self._box)
            case NativeToolConfig(tool=native):
                sealed = SealedNativeTool(tool=native).sealed(self._box)
            case _:
                raise ValueError(f"{node.kind} is no tool")
        return Registered(
            tool=RegisteredTool(
                organization_id=context.organization_id,
                workflow_run_id=context.workflow_run_id,
                node_id=node.id,
                kind=node.kind.value,
                sealed=sealed,
                registered_at=now,
                bound=bound,
                expires_at=expires_at,
            )
        )

    async def release(self, run: WorkflowRun, plan: Plan) -> None:
        """Close the connections of inline servers, in every process."""
        for node in plan.nodes:
            if isinstance(node.config, McpServerNodeConfig) and node.config.inline is not None:
                await self._connections.forget(run.organization_id, inline_server_id(run.id, node.id))

    async def _agent(self, node: PlannedNode, config: AgentNodeConfig, context: NodeContext) -> SealedAgent:
        organization_id = context.organization_id
        try:
            agent = await agent_of_workflow(self._agents, organization_id, config.agent, team=context.team)
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            raise NodeFailed(error.code, error.detail) from None
        if not agent.config.enabled:
            raise NodeFailed("agent_disabled", f"The agent {agent.config.name!r} is disabled.")
        tool = agent_tool(agent, await self._organizations.get(organization_id))
        assert tool.agent is not None
        return SealedAgent(
            agent_id=agent.id,
            name=agent.config.name,
            tool_name=tool.name,
            description=config.description or tool.description,
            timeout_s=min(tool.agent.timeout_s, node.settings.timeout_s or tool.agent.timeout_s),
            nodes=node.connected_tool_node_ids,
        )

    async def _component(
        self, node: PlannedNode, config: HttpRequestConfig, settings: ToolSettings, context: NodeContext
    ) -> SealedComponent:
        secrets = {name: value.name for name, value in settings.bound if isinstance(value, SecretRef)}
        await self._inputs.require((*secrets.values(), *credential_names(config)), context.organization_id)
        others = tuple((name, value) for name, value in settings.bound if name not in secrets)
        bound, _ = await self._inputs.values(node, others, context)
        schemas = dict(config.inputs)
        inputs = {name: value for name, value in (default_values(config) | bound).items() if name in schemas}
        outputs = context.outputs(node)
        properties: JsonObject = {name: schemas[name] for name in settings.exposed}
        required: list[JsonValue] = [name for name in settings.exposed if "default" not in schemas[name]]
        return SealedComponent(
            name=settings.name,
            description=settings.description,
            parameters={
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            config=config,
            values={name: outputs[name] for name in _referred_to(config) if name in outputs},
            inputs=inputs,
            secrets=secrets,
            timeout_s=node.settings.timeout_s,
        )

    async def _server(
        self, node: PlannedNode, config: McpServerNodeConfig, context: NodeContext, now: datetime
    ) -> SealedServer:
        organization_id = context.organization_id
        if not await self._switch.is_on(organization_id):
            raise NodeFailed("mcp_disabled", "MCP disabled")
        scope = ConnectionScope(organization_id=organization_id, person_id=person_of(context.requested_by))
        try:
            if config.inline is None:
                server = await self._registered(context, config.server)
                _require_tools(config, await self._catalogs.of(server, scope))
                return SealedServer(slug=config.server, tools=config.tools, team=context.team)
            server = inline_server(organization_id, context.workflow_run_id, node.id, config.inline, at=now)
            timeout_s = node.settings.timeout_s or DEFAULT_DEADLINE_S
            catalog = await self._connections.discover(server, scope, timeout_s=timeout_s)
        except McpFailure as failure:
            ids = {"workflow_run_id": context.workflow_run_id, "node_id": node.id, "server": config.server}
            logger.warning("MCP server of a workflow not available", extra={**ids, "failure": failure.kind.value})
            said = failure.for_model or failure.detail
            raise NodeFailed(
                "mcp_server_unavailable", f"The MCP server {config.server!r}: {said}", retryable=True
            ) from None
        _require_tools(config, catalog)
        wanted = (
            catalog.tools if config.tools is None else [tool for tool in catalog.tools if tool.name in config.tools]
        )
        return SealedServer(
            slug=config.server,
            tools=config.tools,
            inline=config.inline,
            definitions=tuple(wanted),
            instructions=catalog.instructions if config.inline.trusted else None,
        )

    async def _registered(self, context: NodeContext, slug: str) -> McpServer:
        server = await self._servers.get(context.organization_id, slug)
        if server is None or server.config.slug != slug or not may_use(context.team, server.team):
            raise NodeFailed("mcp_server_not_found", f"There is no MCP server {slug!r}.")
        if not server.config.enabled:
            raise NodeFailed("mcp_server_disabled", f"The MCP server {slug!r} is disabled.")
        if server.lacks_installation:
            raise NodeFailed("mcp_server_not_installed", f"The MCP server {slug!r} is not installed.")
        return server


def inline_server_id(run_id: WorkflowRunId, node_id: str) -> McpServerId:
    """Derived from the run and the node, so that inline servers never share an id."""
    return McpServerId(derived_id("mcp", run_id, node_id))


def inline_server(
    organization_id: OrganizationId, run_id: WorkflowRunId, node_id: str, config: McpServerConfig, *, at: datetime
) -> McpServer:
    """The inline server of a node, for the duration of the run."""
    return McpServer(
        id=inline_server_id(run_id, node_id),
        organization_id=organization_id,
        version=1,
        config=config,
        created_at=at,
        updated_at=at,
    )


def _require_tools(config: McpServerNodeConfig, catalog: McpCatalog) -> None:
    usable = {tool.name for tool in catalog.usable}
    lacking = [name for name in config.tools or () if name not in usable]
    if lacking:
        names = ", ".join(lacking)
        raise NodeFailed(
            "mcp_tool_not_found", f"The MCP server {config.server!r} has no such tool, or it is in quarantine: {names}."
        )


def _referred_to(config: HttpRequestConfig) -> tuple[str, ...]:
    """The nodes that placeholders of the request name."""
    headers: JsonObject = {name: value for name, value in config.headers if isinstance(value, str)}
    whole: JsonObject = {"url": config.url, "headers": headers, "query": dict(config.query), "body": config.body}
    names = (placed.what.name for placed in placeholders(whole) if isinstance(placed.what, Reference))
    return tuple(dict.fromkeys(names))
