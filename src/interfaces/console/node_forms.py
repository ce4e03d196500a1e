"""Forms of workflow nodes: for each kind, a JSON Schema of its configuration, from which the canvas
makes fields."""

from dataclasses import dataclass

from domain.json_value import JsonObject, JsonValue
from domain.tools.capabilities import NATIVE_TYPES
from domain.workflows.graph import JoinStrategy, NodeKind, NodeMode
from domain.workflows.node_config import METHODS

TEMPLATE = "template"
"""Format of a value that is text with `{{NODE.path}}` in it, or JSON."""
LINES = "lines"
"""Format of a text of several lines."""
YAML = "yaml"
"""Format of a value that is written as YAML."""
NAMES = "names"
"""Format of a list of names, one in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeForm:
    """A kind of nodes as the canvas offers it: `id` is the beginning of a new node's id."""

    kind: NodeKind
    mode: NodeMode = NodeMode.NORMAL
    id: str
    title: str
    hint: str
    properties: dict[str, JsonObject]
    required: tuple[str, ...] = ()

    def shown(self) -> JsonObject:
        """What the canvas reads."""
        properties: dict[str, JsonValue] = {**self.properties, **_COMMON}
        schema: JsonObject = {"type": "object", "required": [*self.required], "properties": properties}
        return {
            "kind": self.kind.value,
            "mode": self.mode.value,
            "id": self.id,
            "title": self.title,
            "hint": self.hint,
            "schema": schema,
        }


def _field(title: str, description: str = "", kind: str = "string", **more: JsonValue) -> JsonObject:
    field: JsonObject = {"title": title, "type": kind, **more}
    return field if not description else {**field, "description": description}


def _yaml(title: str, description: str) -> JsonObject:
    return _field(title, description, "object", format=YAML)


_COMMON: dict[str, JsonObject] = {
    "join": _field("Begins", "With several ways in.", enum=[each.value for each in JoinStrategy], default="all"),
    "retry": _field(
        "Retry",
        kind="object",
        properties={
            "attempts": _field("Attempts", "In total; 1 is no retry.", "integer"),
            "delay_s": _field("Seconds before the second attempt", kind="number"),
        },
    ),
    "timeout_s": _field("Timeout (s)", "Of one attempt.", "number"),
}
_INPUT = _field("Input", "{{NODE.path}} stands for what a node put out. Empty: what came before.", format=TEMPLATE)
_EXPRESSION = _field("Expression", "JMESPath over the input.", format=LINES)
_AGENT = _field("Agent", choices="agents")
_TOOLS_TIMEOUT = _field("Seconds to wait for its tools", kind="number")
_IDEMPOTENT = _field("May be repeated when its outcome is unknown", kind="boolean")
_REQUEST: dict[str, JsonObject] = {
    "method": _field("Method", enum=[*METHODS], default="GET"),
    "url": _field("URL", "{{inputs.NAME}} stands for an input."),
    "headers": _yaml("Headers", "Credentials as NAME: {secret: SECRET}."),
    "query": _yaml("Query", "Parameters of the URL."),
    "body": _field("Body", format=TEMPLATE),
    "inputs": _yaml("Inputs", "Names with the JSON Schema of each."),
}

FORMS = (
    NodeForm(
        kind=NodeKind.ENTRYPOINT,
        id="start",
        title="Start",
        hint="Where a run begins; it puts out the input of the run.",
        properties={"schema": _yaml("Schema of the input", "JSON Schema; empty: any JSON.")},
    ),
    NodeForm(
        kind=NodeKind.AGENT,
        id="agent",
        title="Agent",
        hint="A run of an agent, with exactly the tools that are wired to it.",
        properties={
            "agent": _AGENT,
            "input": _INPUT,
            "output_schema": _yaml("Schema of the answer", "JSON Schema of structured output."),
            "model_settings": _yaml("Model settings", "Such as effort: low."),
            "tools_timeout_s": _TOOLS_TIMEOUT,
        },
        required=("agent",),
    ),
    NodeForm(
        kind=NodeKind.HUMAN_INPUT,
        id="ask",
        title="Question",
        hint="Waits for the answer of a person.",
        properties={
            "prompt": _field("Question", "{{NODE.path}} stands for what a node put out.", format=LINES),
            "schema": _yaml("Schema of the answer", "JSON Schema; the person gets a form of it. Empty: any text."),
        },
        required=("prompt",),
    ),
    NodeForm(
        kind=NodeKind.CONDITION,
        id="check",
        title="Condition",
        hint="Takes one of its ways out.",
        properties={
            "input": _INPUT,
            "expression": _field("Expression", "JMESPath over the input; ways out true and false.", format=LINES),
            "cases": _field(
                "Or cases", "A list of {handle, expression}; the first that is true is taken.", "array", format=YAML
            ),
            "otherwise": _field("Way out if no case is true"),
        },
    ),
    NodeForm(
        kind=NodeKind.TRANSFORM,
        id="shape",
        title="Transform",
        hint="Computes a value.",
        properties={"expression": _EXPRESSION, "input": _INPUT},
        required=("expression",),
    ),
    NodeForm(
        kind=NodeKind.MCP_SERVER,
        id="call",
        title="Tool call",
        hint="Calls a tool of an MCP server.",
        properties={
            "server": _field("MCP server", choices="servers"),
            "call": _field("Tool", "Its own name on the server."),
            "arguments": _yaml("Arguments", "Values may have {{NODE.path}} in them."),
            "idempotent": _IDEMPOTENT,
        },
        required=("server", "call"),
    ),
    NodeForm(
        kind=NodeKind.HTTP_REQUEST,
        id="request",
        title="HTTP request",
        hint="Sends a request.",
        properties={**_REQUEST, "bound": _yaml("Values of the inputs", "By name."), "idempotent": _IDEMPOTENT},
        required=("url",),
    ),
    NodeForm(
        kind=NodeKind.MCP_SERVER,
        mode=NodeMode.TOOL,
        id="server",
        title="MCP server",
        hint="Gives an agent the tools of a server.",
        properties={
            "server": _field("MCP server", choices="servers"),
            "tools": _field("Tools", "One in a line; empty: all.", "array", format=NAMES),
        },
        required=("server",),
    ),
    NodeForm(
        kind=NodeKind.NATIVE_TOOL,
        mode=NodeMode.TOOL,
        id="tool",
        title="Native tool",
        hint="Gives an agent one of the built-in tools.",
        properties={"tool": _field("Tool", enum=[each.value for each in NATIVE_TYPES])},
        required=("tool",),
    ),
    NodeForm(
        kind=NodeKind.AGENT,
        mode=NodeMode.TOOL,
        id="helper",
        title="Agent as a tool",
        hint="Lets an agent call another agent.",
        properties={
            "agent": _AGENT,
            "description": _field("Description", "For the model that calls it.", format=LINES),
            "tools_timeout_s": _TOOLS_TIMEOUT,
        },
        required=("agent",),
    ),
    NodeForm(
        kind=NodeKind.HTTP_REQUEST,
        mode=NodeMode.TOOL,
        id="api",
        title="Request as a tool",
        hint="Lets an agent send a request.",
        properties={
            **_REQUEST,
            "tool": _field(
                "As a tool",
                kind="object",
                properties={
                    "name": _field("Name of the tool"),
                    "description": _field("Description", "For the model that calls it.", format=LINES),
                    "exposed": _field(
                        "Inputs that the model sets", "One in a line; they are its parameters.", "array", format=NAMES
                    ),
                    "bound": _yaml("Values of the other inputs", "Hidden from the model; {secret: NAME} is a secret."),
                },
            ),
            "idempotent": _IDEMPOTENT,
        },
        required=("url",),
    ),
)
"""In the order of the palette."""
