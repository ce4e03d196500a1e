"""Toolset: the tools of one run, in a deterministic order."""

import json
from dataclasses import dataclass, field, replace
from functools import cached_property

from application.tools.tool_search import META_TOOLS
from domain.policy.layers import PolicyLayers, ToolPolicy
from domain.tools.capabilities import ToolType
from domain.tools.meta_tools import META_NAMES
from domain.tools.names import is_tool_of
from domain.tools.tool import Tool
from domain.tools.tool_index import ToolIndex

MCP_DISABLED = "MCP disabled"


@dataclass(frozen=True, kw_only=True)
class ServerOverview:
    """One MCP server in the system prompt.

    - `unavailable`: why its tools are missing; None if they are available.
    - `awaiting_approval`: number of tools in quarantine.
    - `settled`: only stored changes affect it; otherwise it is computed each time.
    - `hides_lost`: its tools are left out while its connection is lost.
    """

    slug: str
    tools: tuple[Tool, ...]
    instructions: str | None = None
    unavailable: str | None = None
    awaiting_approval: int = 0
    settled: bool = False
    hides_lost: bool = False


@dataclass(frozen=True, kw_only=True)
class Toolset:
    """Native tools in the order of their kinds, then MCP tools by name.

    - The same agent yields the same bytes, so that prompt caches of providers hit.
    - `problems`: tools left out, one sentence each.
    - With more than `search_threshold` MCP tools the model is shown the meta tools instead.
    - `denied`: tools that policy forbids; the model is not shown them, and calls are refused with
      the reason.
    - `app_tools`: tools that their servers offer to apps only; models are not shown them and cannot
      call them.
    - `is_conditional`: policy depends on who acts and when, so the toolset is that of one person at
      one time.
    - Tools outside an allowlist are left out. `policies` apply to calls of all other tools.
    """

    tools: tuple[Tool, ...]
    servers: tuple[ServerOverview, ...] = ()
    problems: tuple[str, ...] = ()
    search_threshold: int | None = None
    denied: tuple[Tool, ...] = ()
    app_tools: tuple[Tool, ...] = ()
    is_conditional: bool = False
    policies: PolicyLayers = field(default_factory=PolicyLayers, compare=False)

    def find(self, name: str) -> Tool | None:
        return self._by_name.get(name)

    def find_denied(self, name: str) -> Tool | None:
        return self._denied_by_name.get(name)

    def server_slug_of(self, name: str) -> str | None:
        """The slug of the MCP server that has the tool; None for another tool."""
        tool = self._by_name.get(name)
        return None if tool is None or tool.mcp is None else tool.mcp.server_slug

    def policy_of(self, name: str) -> ToolPolicy:
        """The effective policy of the tool; cached for existing names only (models call arbitrary
        names)."""
        known = self._policies.get(name)
        if known is None:
            known = self.policies.resolve(name)
            if name in self._by_name or name in self._denied_by_name:
                self._policies[name] = known
        return known

    @cached_property
    def is_searched(self) -> bool:
        """Whether the model is shown the meta tools instead of the MCP tools."""
        return self.search_threshold is not None and self.mcp_tool_count > self.search_threshold

    @property
    def mcp_tool_count(self) -> int:
        return len(self._mcp_tools)

    @cached_property
    def is_settled(self) -> bool:
        """Whether only stored changes affect the toolset: all servers are available, and none hides
        lost tools."""
        return all(server.settled for server in self.servers)

    @cached_property
    def is_mcp_disabled(self) -> bool:
        """Whether MCP is switched off, which makes all servers unavailable."""
        return any(server.unavailable == MCP_DISABLED for server in self.servers)

    @cached_property
    def is_reduced(self) -> bool:
        """Whether tools are missing for a time: MCP is switched off, or a lost connection hides
        them."""
        return self.is_mcp_disabled or any(server.hides_lost and server.unavailable for server in self.servers)

    def lacks_for_switch(self, name: str) -> bool:
        """Whether a tool of this name would use MCP, which is switched off."""
        if not self.is_mcp_disabled:
            return False
        return name in META_NAMES or any(is_tool_of(server.slug, name) for server in self.servers)

    @cached_property
    def shown(self) -> tuple[Tool, ...]:
        """Tools shown to the model."""
        if not self.is_searched:
            return self.tools
        return (*(tool for tool in self.tools if tool.type is not ToolType.MCP_TOOL), *META_TOOLS)

    @cached_property
    def with_app_tools(self) -> "Toolset":
        """The toolset of models and apps."""
        return replace(self, tools=(*self.tools, *self.app_tools), app_tools=()) if self.app_tools else self

    @cached_property
    def index(self) -> ToolIndex:
        return ToolIndex(self._mcp_tools)

    @cached_property
    def definition_bytes(self) -> int:
        """Approximate size of the definitions in a request."""
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
