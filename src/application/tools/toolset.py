"""The tools of one run: what the model is shown, in a deterministic order, and where each name leads."""

import json
from dataclasses import dataclass, field
from functools import cached_property

from application.tools.tool_search import META_TOOLS
from domain.policy.layers import PolicyLayers, ToolPolicy
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from domain.tools.tool_index import ToolIndex


@dataclass(frozen=True, kw_only=True)
class ServerOverview:
    """One MCP server as the system prompt describes it. `unavailable` says why its tools are missing, if they are;
    `awaiting_approval` how many of them are because they stand in quarantine. `settled`: only what is stored changes it; else it is
    to be looked at each time."""

    slug: str
    tools: tuple[Tool, ...]
    instructions: str | None = None
    unavailable: str | None = None
    awaiting_approval: int = 0
    settled: bool = False


@dataclass(frozen=True, kw_only=True)
class Toolset:
    """Native tools in the order of their kinds, then MCP tools by name: the same agent always yields the same bytes,
    so that
    providers' prompt caches hit. `problems` are tools left out, one sentence each. With more than `search_threshold` MCP
    tools the model is not shown them, but what to search for and call them with.

    `denied` are tools that policy forbids: the model is not shown them, and a call is told so. Tools that no allowlist
    has are not here at all. `policies` hold for calls of all others."""

    tools: tuple[Tool, ...]
    servers: tuple[ServerOverview, ...] = ()
    problems: tuple[str, ...] = ()
    search_threshold: int | None = None
    denied: tuple[Tool, ...] = ()
    policies: PolicyLayers = field(default_factory=PolicyLayers, compare=False)

    def find(self, name: str) -> Tool | None:
        """The tool of that model-facing name."""
        return self._by_name.get(name)

    def find_denied(self, name: str) -> Tool | None:
        """The tool of that name, if it is there but forbidden."""
        return self._denied_by_name.get(name)

    def policy_of(self, name: str) -> ToolPolicy:
        """What policy says of the tool; looked up once for each tool there is (models call others by any name)."""
        known = self._policies.get(name)
        if known is None:
            known = self.policies.resolve(name)
            if name in self._by_name or name in self._denied_by_name:
                self._policies[name] = known
        return known

    @cached_property
    def is_searched(self) -> bool:
        """Whether MCP tools are searched for instead of shown."""
        return self.search_threshold is not None and len(self._mcp_tools) > self.search_threshold

    @cached_property
    def is_settled(self) -> bool:
        """Whether it stays as it is until something is stored: all servers are there, and none comes and goes."""
        return all(server.settled for server in self.servers)

    @cached_property
    def shown(self) -> tuple[Tool, ...]:
        """The tools that the model is shown."""
        if not self.is_searched:
            return self.tools
        return (*(tool for tool in self.tools if tool.type is not ToolType.MCP_TOOL), *META_TOOLS)

    @cached_property
    def index(self) -> ToolIndex:
        """The MCP tools, to be searched."""
        return ToolIndex(self._mcp_tools)

    @cached_property
    def definition_bytes(self) -> int:
        """About how many bytes the definitions take in a request."""
        return sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in self.shown)

    @cached_property
    def _mcp_tools(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.tools if tool.type is ToolType.MCP_TOOL)

    @cached_property
    def _policies(self) -> dict[str, ToolPolicy]:
        return {}

    @cached_property
    def _denied_by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.denied}

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}
