"""Builds the toolset of a run from native tools and the stored catalogs of MCP servers. A server
that does not answer is reported as unavailable; it neither fails nor delays the run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from application.identity.ports import OrganizationStore
from application.identity.read_circumstances import UNKNOWN, Acting, ReadCircumstances
from application.mcp.catalog_reader import CatalogReader
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import (
    ConnectionScope,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpServerStore,
)
from application.system.lru import LruCache
from application.tools.ports import NativeTool
from application.tools.server_tools import is_unregistered, overview_of
from application.tools.toolset import MCP_DISABLED, ServerOverview, Toolset
from application.tools.wired_tools import Wired, WiredTools
from domain.agents.agent import AgentConfig
from domain.ids import ApiKeyId, McpServerId, OrganizationId
from domain.mcp.apps import Audience
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer
from domain.policy.allowlist import Allowlist
from domain.policy.caller import CalledLayers, CallerRules, Restrictions
from domain.policy.layers import PolicyLayers
from domain.policy.rules import NO_POLICIES, Verdict
from domain.teams import Teams, sees
from domain.tools.capabilities import NATIVE_TYPES, ToolType
from domain.tools.tool import Tool
from domain.tools.wired import WiredNodes

logger = logging.getLogger(__name__)

_LOST = "the connection to the MCP server is lost"

DEFAULT_SEARCH_THRESHOLD = 60
"""Limit of MCP tools shown to the model of a run; beyond it the run searches for tools."""
MAX_OVERVIEWS = 1_000
MAX_TOOLSETS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedOverview:
    """A cached overview, valid while server and catalog stay unchanged."""

    server: McpServer
    catalog: McpCatalog
    overview: ServerOverview


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedToolset:
    """A cached toolset and its inputs."""

    servers: tuple[ServerOverview, ...]
    toolset: Toolset


class ToolsetBuilder:
    """Rules:
    - Servers listed before are not contacted. A server of a team is there for agents, and for wired
      nodes of workflows, of this team only.
    - Overviews and toolsets are cached until one of their inputs changes.
    - The tools of a server with a lost shared connection are left out if its strategy is
      `unregister`.
    - The policies of organization, agent and run are combined here, once for all calls of the
      toolset. Rules whose conditions do not hold for who acts are left out.
    """

    def __init__(
        self,
        *,
        native_tools: Mapping[ToolType, NativeTool],
        displayable_tools: Mapping[ToolType, Tool],
        servers: McpServerStore,
        catalogs: CatalogReader,
        connections: McpConnections,
        switch: McpSwitch,
        organizations: OrganizationStore,
        circumstances: ReadCircumstances,
        search_threshold: int = DEFAULT_SEARCH_THRESHOLD,
        wired_tools: WiredTools | None = None,
    ) -> None:
        self._native = {kind: native.tool for kind, native in native_tools.items()} | dict(displayable_tools)
        self._servers = servers
        self._catalogs = catalogs
        self._connections = connections
        self._switch = switch
        self._organizations = organizations
        self._circumstances = circumstances
        self._search_threshold = search_threshold
        self._wired_tools = wired_tools
        self._overviews: LruCache[tuple[OrganizationId, McpServerId], _CachedOverview] = LruCache(MAX_OVERVIEWS)
        self._toolsets: LruCache[tuple[object, ...], _CachedToolset] = LruCache(MAX_TOOLSETS)
        self._failing: LruCache[McpServerId, tuple[int, McpFailureKind]] = LruCache(MAX_OVERVIEWS)
        self._wired_toolsets: LruCache[tuple[object, ...], _CachedToolset] = LruCache(MAX_TOOLSETS)

    @property
    def native_types(self) -> tuple[ToolType, ...]:
        """The native kinds that this installation offers."""
        return tuple(kind for kind in NATIVE_TYPES if kind in self._native)

    def native_tool(self, kind: ToolType) -> Tool:
        """The description of an offered native kind. Raises KeyError for others."""
        return self._native[kind]

    async def toolset(
        self,
        config: AgentConfig,
        scope: ConnectionScope,
        *,
        run_allowlist: Allowlist = None,
        agents: tuple[Tool, ...] = (),
        wired: WiredNodes | None = None,
        caller: CallerRules | None = None,
        actor: ApiKeyId | None = None,
    ) -> Toolset:
        """The tools of `config` and `agents` that all allowlists and policies permit to `actor`,
        those of the `caller` too. With `wired`, the tools of these nodes replace them. Contacts
        servers that were never listed."""

        async def catalog_of(server: McpServer) -> McpCatalog:
            try:
                catalog = await self._catalogs.of(server, scope)
            except McpFailure as failure:
                self._note_failure(server, scope, failure)
                raise
            self._failing.pop(server.id)
            return catalog

        organization_id = scope.organization_id
        if wired is None:
            return await self._toolset(
                config,
                organization_id,
                run_allowlist,
                catalog_of,
                agents=agents,
                caller=caller,
                acting=Acting(actor=actor),
            )
        brought = Wired(missing=wired.node_ids)
        if self._wired_tools is not None:
            brought = await self._wired_tools.of(organization_id, wired)
        servers = tuple(server.slug for server in brought.servers)
        team = next((server.team for server in brought.servers), None)  # all nodes are of one workflow run
        only = replace(config, tools=brought.native, mcp_servers=servers, team=team)
        given = _Given(nodes=wired, brought=brought)
        return await self._toolset(
            only,
            organization_id,
            run_allowlist,
            catalog_of,
            agents=brought.agents,
            given=given,
            caller=caller,
            acting=Acting(actor=actor),
        )

    async def is_outdated(self, toolset: Toolset, organization_id: OrganizationId) -> bool:
        """Whether one of its servers lost its connection, or has it back, since it was built."""
        for overview in toolset.servers:
            if overview.hides_lost:
                server = await self._servers.get(organization_id, overview.slug)
                is_lost = server is not None and is_unregistered(server, self._connections)
                if is_lost is (overview.unavailable is None):
                    return True
        return False

    async def listed_toolset(
        self,
        config: AgentConfig,
        organization_id: OrganizationId,
        *,
        restricted: bool = True,
        agents: tuple[Tool, ...] = (),
        acting: Acting = UNKNOWN,
    ) -> Toolset:
        """The toolset of who acts, from stored catalogs, without contacting or starting servers.
        With `restricted` false, the organization's allowlist and policies do not apply."""
        return await self._toolset(
            config, organization_id, None, self._catalogs.stored, restricted=restricted, agents=agents, acting=acting
        )

    async def _toolset(
        self,
        config: AgentConfig,
        organization_id: OrganizationId,
        run_allowlist: Allowlist,
        catalog_of: Callable[[McpServer], Awaitable[McpCatalog]],
        *,
        restricted: bool = True,
        agents: tuple[Tool, ...],
        given: "_Given | None" = None,
        caller: CallerRules | None = None,
        acting: Acting,
    ) -> Toolset:
        slugs, teams = sorted(config.mcp_servers), config.usable_teams
        if len(slugs) <= 1:  # most agents have one server, and each gateway call comes here: tasks would cost more
            found = tuple([await self._server(slug, organization_id, teams, catalog_of) for slug in slugs])
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._server(slug, organization_id, teams, catalog_of)) for slug in slugs]
            found = tuple(task.result() for task in tasks)
        if given is not None:
            found += await self._inline(organization_id, given.brought)
        organization = await self._organizations.get(organization_id) if restricted else None
        rules = NO_POLICIES if organization is None else organization.tool_policies
        allowlist = None if organization is None else organization.tool_allowlist
        own = config.tool_policies
        is_conditional = (
            rules.is_conditional or own.is_conditional or (caller is not None and caller.policies.is_conditional)
        )
        if is_conditional:
            now = await self._circumstances.of(organization_id, acting)
            rules, own = rules.under(now), own.under(now)
            caller = None if caller is None else replace(caller, policies=caller.policies.under(now))
        narrowed = (allowlist, config.tool_allowlist, run_allowlist, rules, own, is_conditional)
        called = tuple((tool.name, tool.description, tool.agent) for tool in agents)
        key: tuple[object, ...] = (organization_id, config.tools, called, narrowed, caller, *slugs)
        toolsets = self._toolsets
        if given is not None:
            key, toolsets = (*key, given.nodes, given.brought.missing), self._wired_toolsets
        kept = toolsets.get(key)
        if kept is None or not all(map(_is_same, kept.servers, found)):
            restrictions: Restrictions = {
                "organization": rules,
                "agent": own,
                "organization_allowlist": allowlist,
                "agent_allowlist": config.tool_allowlist,
                "run_allowlist": run_allowlist,
            }
            layers = PolicyLayers(**restrictions) if caller is None else CalledLayers(caller, restrictions)
            brought = None if given is None else given.brought
            toolset = self._assembled(config, layers, agents, found, brought)
            kept = _CachedToolset(servers=found, toolset=replace(toolset, is_conditional=is_conditional))
            toolsets.put(key, kept)
        return kept.toolset

    async def _inline(self, organization_id: OrganizationId, brought: Wired) -> tuple[ServerOverview, ...]:
        if not brought.inline or await self._switch.is_on(organization_id):
            return brought.inline
        return tuple(ServerOverview(slug=one.slug, tools=(), unavailable=MCP_DISABLED) for one in brought.inline)

    def _assembled(
        self,
        config: AgentConfig,
        layers: PolicyLayers,
        agents: tuple[Tool, ...],
        found: tuple[ServerOverview, ...],
        brought: Wired | None,
    ) -> Toolset:
        denied: dict[str, Tool] = {}

        def permitted(tool: Tool) -> Tool | None:
            policy = layers.resolve(tool.name)
            if policy.hidden_by is not None:
                return None
            if policy.decision is Verdict.DENY:
                denied.setdefault(tool.name, tool)
                return None
            if policy.idempotent is None or policy.idempotent is tool.repeatable:
                return tool
            return replace(tool, repeatable=policy.idempotent)

        native = [self._native[kind] for kind in NATIVE_TYPES if kind in config.tools and kind in self._native]
        components = () if brought is None else brought.components
        tools = {tool.name: tool for tool in map(permitted, (*native, *agents, *components)) if tool is not None}
        problems = [] if brought is None else [f"{node_id}: the tool is not registered" for node_id in brought.missing]
        overviews: list[ServerOverview] = []
        app_tools: list[Tool] = []
        for overview in found:
            kept: list[Tool] = []
            for tool in map(permitted, _chosen(overview, brought)):
                if tool is None:
                    continue
                if not tool.is_for(Audience.MODEL):
                    app_tools.append(tool)
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
                    settled=overview.settled,
                    hides_lost=overview.hides_lost,
                )
            )
        return Toolset(
            tools=tuple(tools.values()),
            servers=tuple(overviews),
            problems=tuple(problems),
            search_threshold=self._search_threshold,
            denied=tuple(denied.values()),
            app_tools=tuple(app_tools),
            policies=layers,
        )

    async def _server(
        self,
        slug: str,
        organization_id: OrganizationId,
        teams: Teams,
        catalog_of: Callable[[McpServer], Awaitable[McpCatalog]],
    ) -> ServerOverview:
        kinds = await self._switch.permitted(organization_id)
        if kinds is None:
            return ServerOverview(slug=slug, tools=(), unavailable=MCP_DISABLED)
        server = await self._servers.get(organization_id, slug)
        if server is None or not sees(teams, server.team):
            return ServerOverview(slug=slug, tools=(), unavailable="there is no such MCP server")
        if not server.config.enabled:
            return ServerOverview(slug=slug, tools=(), unavailable="the MCP server is disabled")
        if not kinds.permit(server.config):
            return ServerOverview(slug=slug, tools=(), unavailable="MCP servers of this kind are not permitted")
        if server.lacks_installation:
            return ServerOverview(slug=slug, tools=(), unavailable="MCP server not installed")
        try:
            catalog = await catalog_of(server)
        except McpFailure as failure:
            return ServerOverview(slug=slug, tools=(), unavailable=_for_prompt(failure))
        if is_unregistered(server, self._connections):
            return ServerOverview(slug=slug, tools=(), unavailable=_LOST, hides_lost=True)
        return self._overview(server, catalog)

    def _note_failure(self, server: McpServer, scope: ConnectionScope, failure: McpFailure) -> None:
        """Log a failure once for a version of a server, until its kind changes or the server
        answers."""
        state = server.version, failure.kind
        if self._failing.get(server.id) != state:
            self._failing.put(server.id, state)
            _warn(server, scope, failure)

    def _overview(self, server: McpServer, catalog: McpCatalog) -> ServerOverview:
        key = (server.organization_id, server.id)
        kept = self._overviews.get(key)
        if kept is None or kept.catalog is not catalog or kept.server != server:
            kept = _CachedOverview(server=server, catalog=catalog, overview=overview_of(server, catalog))
            self._overviews.put(key, kept)
        return kept.overview


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Tools that replace those of the agent."""

    nodes: WiredNodes
    brought: Wired


def _chosen(overview: ServerOverview, brought: Wired | None) -> tuple[Tool, ...]:
    """The server's tools, or only the wired ones."""
    if brought is None:
        return overview.tools
    wanted = [server.tools for server in brought.servers if server.slug == overview.slug]
    if not wanted or None in wanted:
        return overview.tools
    names = frozenset().union(*(names for names in wanted if names is not None))
    return tuple(tool for tool in overview.tools if tool.mcp is not None and tool.mcp.tool_name in names)


def _warn(server: McpServer, scope: ConnectionScope, failure: McpFailure) -> None:
    logger.warning(
        "MCP server unavailable at run start",
        extra={
            "organization_id": scope.organization_id,
            "run_id": scope.run_id,
            "server_id": server.id,
            "server": server.config.slug,
            "failure": failure.kind.value,
            "detail": failure.detail,
            "stderr": failure.stderr[-500:],
        },
    )


def _is_same(kept: ServerOverview, found: ServerOverview) -> bool:
    """Overviews with tools are cached, so identity suffices; others are compared."""
    return kept is found or (not kept.tools and kept == found)


def _for_prompt(failure: McpFailure) -> str:
    """A text for the system prompt, which must not contain error texts of servers."""
    if failure.kind is McpFailureKind.SERVER_ERROR:
        return "the MCP server answered with an error"
    return failure.for_model or failure.detail
