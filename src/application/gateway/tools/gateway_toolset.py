"""GatewayToolsets: the current tools of a session, under the names of its client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from application.agents.calling_agent import caller_rules
from application.agents.ports import AgentStore
from application.gateway.tools.param_headers import HeaderParam, header_params
from application.identity.ports import OrganizationStore
from application.mcp.ports import ConnectionScope
from application.policy.canary_guard import CanaryGuard
from application.runs.ports import RunReader
from application.system.lru import LruCache
from application.system.ports import Clock
from application.tools.agents_as_tools import AgentsAsTools
from application.tools.tool_search import META_TOOLS
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import GatewaySession, ToolNames, ToolSearch
from domain.identity.api_key import person_of
from domain.identity.organization import Organization
from domain.ids import GatewaySessionId, RunId
from domain.mcp.apps import Audience
from domain.policy.allowlist import Allowlist
from domain.runs.called_by import CalledBy
from domain.runs.limits import Limits
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from domain.tools.wired import WiredNodes

_CAPACITY = 1_000
_CONDITIONAL_S = 0.5
_Narrowing: TypeAlias = tuple[Allowlist, WiredNodes | None, CalledBy | None]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class GatewayToolset:
    """The tools of a session. Client tools are left out: a gateway client cannot settle them. Tools
    for apps only are in `with_apps`, for clients that render apps.
    With more than `search_threshold` MCP tools clients are listed the meta tools instead."""

    agent: Agent
    organization: Organization | None
    toolset: Toolset
    names: ToolNames
    guard: CanaryGuard
    search_threshold: int | None = None
    renders_apps: bool = False

    @cached_property
    def tool_timeout_s(self) -> float:
        """Longest duration of a call, by agent and organization."""
        limits = self.agent.config.limits
        return Limits.of(
            limits if self.organization is None else limits.narrowed_by(self.organization.limits)
        ).tool_timeout_s

    def timeout_s(self, name: str) -> float:
        """Longest duration of a call of the tool with this model-facing name."""
        found = self._timeouts_s.get(name)
        if found is None:
            found = self._timeout_s(name)
            if self.toolset.find(name) is not None:  # unknown names would fill the cache
                self._timeouts_s[name] = found
        return found

    def _timeout_s(self, name: str) -> float:
        policy, tool = self.toolset.policy_of(name), self.toolset.find(name)
        # A called agent has its own, longer limit.
        allowed_s = self.tool_timeout_s if tool is None or tool.agent is None else tool.agent.timeout_s
        return allowed_s if policy.timeout_s is None else min(allowed_s, policy.timeout_s)

    @cached_property
    def tools(self) -> tuple[tuple[str, Tool], ...]:
        """The tools with the client's names, in a fixed order."""
        return tuple((self.exposed(tool), tool) for tool in self.toolset.tools if not tool.is_displayable)

    def listed(self, search: ToolSearch) -> tuple[tuple[str, Tool], ...]:
        """The tools that a client is shown."""
        return self._searched if self.is_searched(search) else self.tools

    def is_searched(self, search: ToolSearch) -> bool:
        """Whether the client is shown the meta tools instead of the MCP tools."""
        if search is not ToolSearch.AUTO:
            return search is ToolSearch.ALWAYS
        return self.search_threshold is not None and self.toolset.mcp_tool_count > self.search_threshold

    @cached_property
    def with_apps(self) -> "GatewayToolset":
        """The same tools with those that only apps may call. Apps call the tools of their servers
        by the servers' own names."""
        if not self.app_links and not self.toolset.app_tools:
            return self
        return replace(self, toolset=self.toolset.with_app_tools, renders_apps=True)

    @cached_property
    def app_links(self) -> Mapping[str, frozenset[str]]:
        """The slugs of the servers with tools that link to an app, by the servers' own URI of the
        app."""
        found: dict[str, set[str]] = {}
        for tool in (*self.toolset.with_app_tools.tools, *self.toolset.denied):
            if tool.mcp is not None and tool.mcp.definition is not None:
                for uri in tool.mcp.definition.app_links:
                    found.setdefault(uri, set()).add(tool.mcp.server_slug)
        return {uri: frozenset(slugs) for uri, slugs in found.items()}

    def is_for_apps(self, name: str, tool: Tool) -> bool:
        """Whether only an app calls the tool by this name."""
        return name != self.exposed(tool) or not tool.is_for(Audience.MODEL)

    def exposed(self, tool: Tool) -> str:
        """The client's name of the tool."""
        if self.names is ToolNames.ORIGINAL and tool.type is ToolType.MCP_TOOL and tool.mcp is not None:
            return tool.mcp.tool_name
        return tool.name

    def header_params(self, tool: Tool) -> tuple[HeaderParam, ...]:
        """The tool's parameters that are repeated in HTTP headers."""
        if tool.mcp is None:
            return ()
        found = self._header_params.get(tool.name)
        if found is None:
            found = self._header_params[tool.name] = header_params(tool.parameters)
        return found

    def slug_of(self, tool: Tool | None) -> str | None:
        """The slug of the tool's server, if the client knows the server's resources by other
        URIs."""
        return None if tool is None or tool.mcp is None or self.names is ToolNames.ORIGINAL else tool.mcp.server_slug

    def model_facing(self, name: str) -> str | None:
        """The name in policy and ledger of the tool that the client calls `name`, allowed or
        denied.
        An app's name that tools of several servers have is none."""
        named = self.named_by_apps(name)
        return self._model_facing.get(name) or (named[0] if len(named) == 1 else None)

    def named_by_apps(self, name: str) -> tuple[str, ...]:
        """The model-facing names of the tools that apps call `name`, for a client that renders
        apps."""
        return self._named_by_apps.get(name, ()) if self.renders_apps else ()

    @cached_property
    def _searched(self) -> tuple[tuple[str, Tool], ...]:
        others = (one for one in self.tools if one[1].type is not ToolType.MCP_TOOL)
        return (*others, *((tool.name, tool) for tool in META_TOOLS))

    @cached_property
    def _timeouts_s(self) -> dict[str, float]:
        return {}

    @cached_property
    def _header_params(self) -> dict[str, tuple[HeaderParam, ...]]:
        return {}

    @cached_property
    def _model_facing(self) -> dict[str, str]:
        there = (*self.toolset.tools, *self.toolset.denied)
        return {self.exposed(tool): tool.name for tool in there if not tool.is_displayable}

    @cached_property
    def _named_by_apps(self) -> Mapping[str, tuple[str, ...]]:
        """Model-facing names by the servers' own names, of servers with apps."""
        slugs = frozenset().union(*self.app_links.values())
        found: dict[str, list[str]] = {}
        for tool in (*self.toolset.tools, *self.toolset.denied):
            if tool.mcp is not None and tool.mcp.server_slug in slugs and tool.is_for(Audience.APP):
                found.setdefault(tool.mcp.tool_name, []).append(tool.name)
        return {name: tuple(names) for name, names in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """Tools that hold while `rows` stay, and to the monotonic time `until`."""

    rows: int
    until: float | None
    tools: GatewayToolset


class GatewayToolsets:
    """Rules:
    - A change of an agent applies to the next request. A disabled agent has no tools.
    - A session of a run has the run's tools; a session of workflow nodes has exactly their tools.
    - Tools of a policy that depends on who acts and when are kept for half a second: a member who
      was removed from a group has lost by then what was theirs.
    - `rows` is the version of agents, organizations, servers and catalogs, and None while
      changes may be missed. Toolsets that depend only on these are cached by it.
    """

    def __init__(
        self,
        *,
        agents: AgentStore,
        runs: RunReader,
        organizations: OrganizationStore,
        catalog: ToolsetBuilder,
        agents_as_tools: AgentsAsTools,
        clock: Clock,
        rows: Callable[[], int | None] = lambda: None,
        search_threshold: int | None = None,
    ) -> None:
        self._agents = agents
        self._runs = runs
        self._organizations = organizations
        self._catalog = catalog
        self._agents_as_tools = agents_as_tools
        self._narrowings: LruCache[GatewaySessionId, _Narrowing] = LruCache(_CAPACITY)
        self._kept: LruCache[GatewaySessionId, GatewayToolset] = LruCache(_CAPACITY)
        self._clock = clock
        self._rows = rows
        self._search_threshold = search_threshold
        self._settled: LruCache[GatewaySessionId, _Settled] = LruCache(_CAPACITY)

    async def of(self, session: GatewaySession) -> GatewayToolset:
        """Raises FORBIDDEN `agent_disabled`, NOT_FOUND `agent_not_found`."""
        rows = self._rows()
        settled = self._settled.get(session.id)
        if settled is not None and rows is not None and settled.rows == rows and not self._is_over(settled):
            return settled.tools
        asked = self._clock.monotonic()
        made = await self._made(session)
        if rows is not None and session.wired is None and session.run_id is None and made.toolset.is_settled:
            until = asked + _CONDITIONAL_S if made.toolset.is_conditional else None
            self._settled.put(session.id, _Settled(rows=rows, until=until, tools=made))
        return made

    def _is_over(self, settled: _Settled) -> bool:
        return settled.until is not None and self._clock.monotonic() >= settled.until

    async def guard_of(self, session: GatewaySession) -> CanaryGuard:
        """The guard for the session's canary tokens, also while its agent is disabled. A deleted
        agent has no tokens."""
        agent = await self._agents.get(session.organization_id, session.agent_id)
        return CanaryGuard({}) if agent is None else await _guard(agent, session)

    async def _made(self, session: GatewaySession) -> GatewayToolset:
        agent = await self._agents.get(session.organization_id, session.agent_id)
        if agent is None:
            raise _closed("agent_not_found", "The agent of this session was deleted.")
        if not agent.config.enabled:
            raise _closed("agent_disabled", f"The agent {agent.config.name!r} is disabled.")
        # Runs call wired agents only, and so do sessions of runs and nodes.
        agents = (
            () if session.ends_with_another else await self._agents_as_tools.of(session.organization_id, agent.config)
        )
        allowlist, wired, called_by = await self._narrowing(session)
        caller = await caller_rules(self._agents, session.organization_id, called_by, agent.config)
        if wired is not None:
            # The session has none of the agent's own tools.
            agent = replace(agent, config=replace(agent.config, tools=(), mcp_servers=()))
        toolset = await self._catalog.toolset(
            agent.config,
            scope_of(session),
            run_allowlist=allowlist,
            agents=agents,
            wired=wired,
            caller=caller,
            actor=session.created_by,
        )
        organization = await self._organizations.get(session.organization_id)
        kept = self._kept.get(session.id)
        if kept is None or kept.toolset is not toolset or kept.agent != agent or kept.organization != organization:
            kept = GatewayToolset(
                agent=agent,
                organization=organization,
                toolset=toolset,
                names=session.names,
                guard=await _guard(agent, session),
                search_threshold=self._search_threshold,
            )
            self._kept.put(session.id, kept)
        return kept

    async def _narrowing(self, session: GatewaySession) -> _Narrowing:
        """The allowlist, tool nodes and caller of the session's run, which never change."""
        if session.run_id is None:
            return None, session.wired, None
        narrowing = self._narrowings.get(session.id)
        if narrowing is None:
            run = await self._runs.get(session.organization_id, session.run_id)
            narrowing = ((), None, None) if run is None else (run.tool_allowlist, run.wired, CalledBy.of(run.metadata))
            self._narrowings.put(session.id, narrowing)
        return narrowing


async def _guard(agent: Agent, session: GatewaySession) -> CanaryGuard:
    return await CanaryGuard.prepared(agent, session.run_id or RunId(session.id))


def scope_of(session: GatewaySession) -> ConnectionScope:
    """The owner of the connections of the session's calls: its run, or the session."""
    return ConnectionScope(
        organization_id=session.organization_id,
        thread_id=session.thread_id,
        run_id=session.run_id,
        gateway_session_id=None if session.run_id is not None else session.id,
        person_id=person_of(session.created_by),
    )


def _closed(code: str, detail: str) -> ServiceError:
    return ServiceError(code, ErrorKind.FORBIDDEN, detail)
