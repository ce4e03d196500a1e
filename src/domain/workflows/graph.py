"""Workflow definitions: nodes, edges and handles. The compiler gives them meaning."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from domain.ids import OrganizationId, WorkflowId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.server import McpServerConfig
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.secrets.secret import SecretRef, SecretValue
from domain.tools.capabilities import ToolType

MAX_NODES = 500
MAX_EDGES = 5_000

TOOLS_HANDLE = "tools"
"""Where an agent takes tools; also accepted as the handle that a tool gives itself by."""
INPUT_HANDLE = "input"
OUTPUT_HANDLE = "output"
TOOL_HANDLE = "tool"

_NODE_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class NodeKind(StrEnum):
    """The kinds of nodes. The values are part of the public contract."""

    ENTRYPOINT = "entrypoint"
    AGENT = "agent"
    HTTP_REQUEST = "http_request"
    MCP_SERVER = "mcp_server"
    NATIVE_TOOL = "native_tool"
    TRANSFORM = "transform"
    CONDITION = "condition"
    HUMAN_INPUT = "human_input"


class NodeMode(StrEnum):
    """`normal`: executed as a step. `tool`: registers itself, when executed, as a tool of the
    agents that it is wired to."""

    NORMAL = "normal"
    TOOL = "tool"


class JoinStrategy(StrEnum):
    """When a node with several incoming edges starts.

    - `all`: when every edge is decided, if at least one was taken and none failed.
    - `any`: when the first edge is taken; later edges and failures are ignored.
    - `first`: like `any`, and nodes that no other node waits for are cancelled.
    """

    ALL = "all"
    ANY = "any"
    FIRST = "first"


TOOL_KINDS = (NodeKind.AGENT, NodeKind.HTTP_REQUEST, NodeKind.MCP_SERVER, NodeKind.NATIVE_TOOL)
"""Kinds that may be in tool mode. A native tool is in no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDefinition:
    """An unchecked node: kind, mode and config may be wrong."""

    id: str
    kind: str
    mode: str = NodeMode.NORMAL.value
    config: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An empty `source_handle` means the only handle of the source."""

    source: str
    target: str
    source_handle: str = ""
    target_handle: str = INPUT_HANDLE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDefinition:
    """`team` is the group that it belongs to; None: to the organization."""

    name: str
    nodes: tuple[NodeDefinition, ...]
    edges: tuple[Edge, ...]
    team: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A saved workflow at one of its versions. Only workflows that compile are saved. `text` is the
    YAML that a person saved, with its comments; None for a definition that came without."""

    id: WorkflowId
    organization_id: OrganizationId
    version: int
    definition: WorkflowDefinition
    created_at: datetime
    updated_at: datetime
    text: str | None = None

    @property
    def team(self) -> str | None:
        return self.definition.team


BoundValue: TypeAlias = "JsonValue | SecretRef"
"""The value of an input: a template, or a reference to a secret."""


# --- configurations, created by the compiler -----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a failed node is executed in total, and the seconds before the second attempt. Each
    further pause doubles."""

    attempts: int = 1
    delay_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Settings for nodes of every kind. `timeout_s` bounds one attempt; None uses the kind's
    default."""

    join: JoinStrategy = JoinStrategy.ALL
    retry: Retry = Retry()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """A component as a tool. Inputs in `bound` never reach the model; those in `exposed` are its
    parameters."""

    name: str
    description: str
    bound: tuple[tuple[str, BoundValue], ...] = ()
    exposed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrypointConfig:
    """The start of a workflow; its output is the run's input. `schema` is a JSON Schema of the
    input."""

    schema: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNodeConfig:
    """A run of an agent (id or name) on a new thread. `input` is a template; None passes the
    outputs of the predecessors. `tools_timeout_s` is how long the node waits for its tools.
    `model_settings` and `output_schema` are those of the run.

    As a tool, each call starts a run with what the calling model says. `description` is for that
    model; None uses the agent's. `input`, `model_settings` and `output_schema` are for steps
    only."""

    agent: str
    description: str | None = None
    input: JsonValue = None
    tools_timeout_s: float = 60.0
    model_settings: ModelSettings = NO_SETTINGS
    output_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequestConfig:
    """An HTTP request. `inputs` maps names to JSON Schemas; `{{inputs.NAME}}` is replaced by a
    value.

    As a step, `bound` gives the values; as a tool, `tool` does. `idempotent`: the request may be
    repeated when its outcome is unknown.
    """

    method: str
    url: str
    headers: tuple[tuple[str, SecretValue], ...] = ()
    query: tuple[tuple[str, JsonValue], ...] = ()
    body: JsonValue = None
    inputs: tuple[tuple[str, JsonObject], ...] = ()
    bound: tuple[tuple[str, BoundValue], ...] = ()
    tool: ToolSettings | None = None
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerNodeConfig:
    """A registered MCP server by its slug, or, as a tool, an `inline` server that exists for this
    run only.

    - As a tool it provides all tools of the server, or those in `tools`, under their own names.
    - As a step it calls the tool `call`, with `arguments` as a template.
    """

    server: str
    inline: McpServerConfig | None = None
    tools: tuple[str, ...] | None = None
    call: str | None = None
    arguments: JsonObject = field(default_factory=dict)
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeToolConfig:
    """A native tool for the agents that the node is wired to."""

    tool: ToolType


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformConfig:
    """A JMESPath expression over `input`, a template. None uses the outputs of the predecessors."""

    expression: str
    input: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The edges of `handle` are taken if the JMESPath expression is true."""

    handle: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionConfig:
    """Takes the handle of the first case that is true for `input`, otherwise `otherwise`."""

    cases: tuple[Case, ...]
    otherwise: str
    input: JsonValue = None

    @property
    def handles(self) -> tuple[str, ...]:
        return (*(case.handle for case in self.cases), self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanInputConfig:
    """Waits for a person's answer to `prompt`, a template. `schema` is a JSON Schema of the
    answer."""

    prompt: str
    schema: JsonObject | None = None


NodeConfig = (
    EntrypointConfig
    | AgentNodeConfig
    | HttpRequestConfig
    | McpServerNodeConfig
    | NativeToolConfig
    | TransformConfig
    | ConditionConfig
    | HumanInputConfig
)


def is_legal_node_id(node_id: str) -> bool:
    """Whether an id has the form `[A-Za-z_][A-Za-z0-9_-]{0,63}` and is not reserved in
    templates."""
    return _NODE_ID.fullmatch(node_id) is not None and node_id != "inputs"
