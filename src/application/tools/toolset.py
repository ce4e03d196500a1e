"""The tools of one run: what the model is shown, in a deterministic order, and where each name leads."""

import json
from dataclasses import dataclass
from functools import cached_property

from domain.tools.tool import Tool


@dataclass(frozen=True, kw_only=True)
class ServerOverview:
    """One MCP server as the system prompt describes it. `unavailable` says why its tools are missing, if they are;
    `awaiting_approval` how many of them are because they stand in quarantine."""

    slug: str
    tools: tuple[Tool, ...]
    instructions: str | None = None
    unavailable: str | None = None
    awaiting_approval: int = 0


@dataclass(frozen=True, kw_only=True)
class Toolset:
    """Native tools in the order of their kinds, then MCP tools by name: the same agent always yields the same bytes,
    so that
    providers' prompt caches hit. `problems` are tools left out, one sentence each."""

    tools: tuple[Tool, ...]
    servers: tuple[ServerOverview, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> Tool | None:
        """The tool of that model-facing name."""
        return self._by_name.get(name)

    @cached_property
    def definition_bytes(self) -> int:
        """About how many bytes the definitions take in a request."""
        return sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in self.tools)

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}
