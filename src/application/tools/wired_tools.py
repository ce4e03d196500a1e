"""Port for the tools of a workflow run's tool nodes, the one seam between tools and workflows."""

from dataclasses import dataclass
from typing import Protocol

from application.tools.ports import NativeToolContext, NativeToolOutput
from application.tools.toolset import ServerOverview
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.tool import ComponentBinding, Tool
from domain.tools.wired import WiredNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredServer:
    """A registered MCP server, by slug, for a workflow run of `team`. `tools` are the server's
    names of the wired tools; None for all."""

    slug: str
    tools: frozenset[str] | None = None
    team: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """Tools of the wired nodes: native tools, components, agents, registered servers, and servers
    of the workflow run. `missing` are nodes that are not registered."""

    native: tuple[ToolType, ...] = ()
    components: tuple[Tool, ...] = ()
    agents: tuple[Tool, ...] = ()
    servers: tuple[WiredServer, ...] = ()
    inline: tuple[ServerOverview, ...] = ()
    missing: tuple[str, ...] = ()


class WiredTools(Protocol):
    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> Wired:
        """The tools of exactly these nodes. If all are registered, returns the identical object
        while it is cached."""
        ...


class ComponentTools(Protocol):
    async def call(
        self, binding: ComponentBinding, arguments: JsonObject, context: NativeToolContext
    ) -> NativeToolOutput:
        """Execute with validated arguments. Raises NativeToolError. Cancellation stops the work."""
        ...
