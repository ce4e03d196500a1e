"""A tool as a run knows it: what the model is shown, and where a call goes."""

from dataclasses import dataclass, field

from domain.ids import AgentId, McpServerId, WorkflowRunId
from domain.json_value import JsonObject
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.client_request import ClientRequestKind
from domain.mcp.server import McpServer
from domain.tools.capabilities import ToolCapability, ToolType, capability_of


@dataclass(frozen=True, slots=True, kw_only=True)
class McpBinding:
    """Where an MCP tool lives: the server, and the name the server itself gives the tool. `definition` is what the run was
    given: a tool that is no longer just that is not called. `asks` is what the server may ask clients of the gateway for;
    `inline` the server itself where it is nobody's but a workflow run's, and not registered."""

    server_id: McpServerId
    server_slug: str
    tool_name: str
    output_schema: JsonObject | None = None
    timeout_s: float | None = None
    definition: McpToolDefinition | None = None
    asks: frozenset[ClientRequestKind] = frozenset()
    inline: McpServer | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentBinding:
    """Which tool node of a workflow run executes the calls. `sealed` is what they take, values of bound inputs and of
    credentials among it, encrypted."""

    workflow_run_id: WorkflowRunId
    node_id: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBinding:
    """Which agent a call starts a run of, and for how many seconds its answer is waited for at most."""

    agent_id: AgentId
    name: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of a run.

    `name` is model-facing; `parameters` a JSON Schema of the arguments object. `repeatable` says that a call whose
    outcome is unknown may be sent again (read-only or idempotent, said by someone trusted).
    """

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
        """Displayable or executable, by type."""
        return capability_of(self.type)

    @property
    def is_displayable(self) -> bool:
        """Whether the client renders and settles calls of this tool."""
        return self.capability is ToolCapability.DISPLAYABLE
