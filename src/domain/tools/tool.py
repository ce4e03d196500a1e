"""A tool of a run: its description for the model, and the target of its calls."""

from dataclasses import dataclass, field
from datetime import datetime

from domain.ids import AgentId, McpServerId, WorkflowRunId
from domain.json_value import JsonObject
from domain.mcp.apps import Audience
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.client_request import ClientRequestKind
from domain.mcp.server import McpServer
from domain.mcp.server_pin import ServerPin
from domain.tools.capabilities import ToolCapability, ToolType, capability_of
from domain.tools.wired import WiredNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class McpBinding:
    """The server of an MCP tool, and the server's own name of the tool.

    - `definition`: the definition at the start of the run; a changed tool is not called.
    - `pin`: the server's state when the toolset was built; None for a server that is not
      registered.
    - `asks`: requests that the server may send to clients of the gateway.
    - `own_accounts`: the server is used with the account of the person who acts.
    - `continues`: a call with a stored state only reads on, so that it may be sent again.
    - `inline`: the server itself if it belongs to a workflow run and is not registered.
    """

    server_id: McpServerId
    server_slug: str
    tool_name: str
    output_schema: JsonObject | None = None
    timeout_s: float | None = None
    definition: McpToolDefinition | None = None
    asks: frozenset[ClientRequestKind] = frozenset()
    continues: bool = False
    own_accounts: bool = False
    inline: McpServer | None = field(default=None, repr=False)
    pin: ServerPin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentBinding:
    """The tool node of a workflow run that executes the calls until `expires_at`. `sealed` is its
    encrypted configuration, `bound` are its encrypted bound values."""

    workflow_run_id: WorkflowRunId
    node_id: str
    sealed: bytes = field(repr=False)
    bound: bytes | None = field(default=None, repr=False)
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBinding:
    """The agent that a call starts, and the longest wait for its answer in seconds. `wired` nodes
    replace the tools of the agent."""

    agent_id: AgentId
    name: str
    timeout_s: float
    wired: WiredNodes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of a run. `name` is model-facing; `parameters` is the JSON Schema of the arguments.
    A call of a `repeatable` tool with an unknown outcome may be sent again (read-only or
    idempotent, as a trusted source declares)."""

    name: str
    type: ToolType
    description: str
    parameters: JsonObject
    mcp: McpBinding | None = None
    component: ComponentBinding | None = None
    agent: AgentBinding | None = None
    repeatable: bool = False

    @property
    def capability(self) -> ToolCapability:
        return capability_of(self.type)

    @property
    def server_pin(self) -> ServerPin | None:
        """What an approval of a call is bound to, besides tool, arguments and agent."""
        return None if self.mcp is None else self.mcp.pin

    @property
    def uses_own_accounts(self) -> bool:
        """Whether its calls use the account of the person who acts."""
        return self.mcp is not None and self.mcp.own_accounts

    def is_for(self, audience: Audience) -> bool:
        """Whether its server offers the tool to models, or to apps. Tools without a definition are
        for both."""
        definition = None if self.mcp is None else self.mcp.definition
        return definition is None or audience in definition.audience

    @property
    def is_displayable(self) -> bool:
        return self.capability is ToolCapability.DISPLAYABLE
