"""Workflows as they are written: nodes, edges, handles. What a definition means is the compiler's to say."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from domain.ids import OrganizationId, WorkflowId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.server import McpServerConfig as ServerSettings
from domain.secrets.secret import SecretRef, SecretValue

MAX_NODES = 500
MAX_EDGES = 5_000

TOOLS_HANDLE = "tools"
INPUT_HANDLE = "input"
OUTPUT_HANDLE = "output"
TOOL_HANDLE = "tool"

_NODE_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class NodeKind(StrEnum):
    """What a node does; values are part of the public contract."""

    ENTRYPOINT = "entrypoint"
    AGENT = "agent"
    HTTP_REQUEST = "http_request"
    MCP_SERVER = "mcp_server"
    TRANSFORM = "transform"
    CONDITION = "condition"
    HUMAN_INPUT = "human_input"


class NodeMode(StrEnum):
    """`normal`: executed as a step. `tool`: registers itself, when executed, as a tool of the agents it is wired to."""

    NORMAL = "normal"
    TOOL = "tool"


class JoinStrategy(StrEnum):
    """When a node goes on that several edges lead to.

    `all`: once every edge is decided, if one was taken at least and none failed. `any`: as soon as one is taken; what
    comes later, or fails, does not matter. `first`: as `any`, and nodes that nothing else waits for are cancelled.
    """

    ALL = "all"
    ANY = "any"
    FIRST = "first"


TOOL_KINDS = frozenset({NodeKind.HTTP_REQUEST, NodeKind.MCP_SERVER})
"""Kinds that may be in tool mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDefinition:
    """A node as it was written: kind, mode and config may be wrong."""

    id: str
    kind: str
    mode: str = NodeMode.NORMAL.value
    config: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """`source_handle` empty stands for the source's only one, `target_handle` for `input`."""

    source: str
    target: str
    source_handle: str = ""
    target_handle: str = INPUT_HANDLE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDefinition:
    """A workflow as it was written."""

    name: str
    nodes: tuple[NodeDefinition, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A saved workflow at one of its versions. Only what compiles is saved."""

    id: WorkflowId
    organization_id: OrganizationId
    version: int
    definition: WorkflowDefinition
    created_at: datetime
    updated_at: datetime


BoundValue: TypeAlias = "JsonValue | SecretRef"
"""The value of an input: a template, or a secret's."""


# --- configurations, as the compiler makes them -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a failed node is executed in all, and the seconds before the second time; each further wait is twice
    the one before."""

    attempts: int = 1
    delay_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """What nodes of every kind may say. `timeout_s` is for one attempt; None leaves it to the kind."""

    join: JoinStrategy = JoinStrategy.ALL
    retry: Retry = Retry()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """A component as a tool: inputs `bound` to values never reach the model, those `exposed` are its parameters."""

    name: str
    description: str
    bound: tuple[tuple[str, BoundValue], ...] = ()
    exposed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrypointConfig:
    """Where a workflow begins; its output is the run's input. `schema` is a JSON Schema of it."""

    schema: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """A run of an agent (id or name) on a thread of its own. `input` is a template; None gives it what its
    predecessors put out. `tools_timeout_s` is how long it waits for its tools to be ready."""

    agent: str
    input: JsonValue = None
    tools_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequestConfig:
    """An HTTP request. `inputs` maps names to JSON Schemas; `{{inputs.NAME}}` stands for the value of one.

    As a step `bound` gives the values; as a tool, `tool` does. `idempotent` says that it may be sent again when its
    outcome is unknown.
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
class McpServerConfig:
    """A registered MCP server by its slug, or, as a tool, one that is defined here: `inline`, which is there for the run
    alone. As a tool it brings its tools, or those of `tools`, by their own names; as a step it calls one of them: `call`,
    with `arguments` as a template."""

    server: str
    inline: ServerSettings | None = None
    tools: tuple[str, ...] | None = None
    call: str | None = None
    arguments: JsonObject = field(default_factory=dict)
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformConfig:
    """A JMESPath expression over `input`, a template; None means what the predecessors put out."""

    expression: str
    input: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The edges of `handle` are taken if the JMESPath expression holds."""

    handle: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionConfig:
    """Takes the handle of the first case that holds over `input`, or `otherwise`."""

    cases: tuple[Case, ...]
    otherwise: str
    input: JsonValue = None

    @property
    def handles(self) -> tuple[str, ...]:
        """All its ways out."""
        return (*(case.handle for case in self.cases), self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanInputConfig:
    """Waits for a person's answer to `prompt`, a template; `schema` is a JSON Schema of the answer."""

    prompt: str
    schema: JsonObject | None = None


NodeConfig = (
    EntrypointConfig
    | AgentConfig
    | HttpRequestConfig
    | McpServerConfig
    | TransformConfig
    | ConditionConfig
    | HumanInputConfig
)


def is_legal_node_id(node_id: str) -> bool:
    """Whether an id has the form `[A-Za-z_][A-Za-z0-9_-]{0,63}` and does not stand for something else in templates."""
    return _NODE_ID.fullmatch(node_id) is not None and node_id != "inputs"
