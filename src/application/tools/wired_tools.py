"""What the tool nodes of a workflow run bring to the agents they are wired to: the one seam between tools and workflows."""

from dataclasses import dataclass
from typing import Protocol

from application.tools.ports import NativeToolContext, NativeToolOutput
from application.tools.toolset import ServerOverview
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from domain.tools.tool import ComponentBinding, Tool
from domain.tools.wired import WiredNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredServer:
    """A registered MCP server, by its slug; `tools` are the names, as the server has them, that are wired: None for all."""

    slug: str
    tools: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """Components as tools, registered servers, and servers of the workflow run's own with their tools; `missing` are nodes that
    are not registered (any more)."""

    components: tuple[Tool, ...] = ()
    servers: tuple[WiredServer, ...] = ()
    inline: tuple[ServerOverview, ...] = ()
    missing: tuple[str, ...] = ()


class WiredTools(Protocol):
    """The tools of nodes of workflow runs."""

    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> Wired:
        """What exactly these nodes bring; nothing for none. Of nodes that are all registered it is the same object every
        time, for as long as it is kept."""
        ...


class ComponentTools(Protocol):
    """Calls of components."""

    async def call(
        self, binding: ComponentBinding, arguments: JsonObject, context: NativeToolContext
    ) -> NativeToolOutput:
        """Execute with validated arguments. Raises NativeToolError. Cancellation stops the work."""
        ...
