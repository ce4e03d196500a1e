"""The workflow compiler: turns a definition into a plan, or reports all faults at once with node
ids."""

from dataclasses import dataclass, replace

from domain.json_value import JsonObject, JsonValue
from domain.nearest import nearest
from domain.workflows.config_reader import ConfigReader
from domain.workflows.expression_scope import scope_warnings
from domain.workflows.faults import Fault, FaultCode
from domain.workflows.graph import (
    MAX_EDGES,
    MAX_NODES,
    TOOL_KINDS,
    EntrypointConfig,
    NodeDefinition,
    NodeKind,
    NodeMode,
    WorkflowDefinition,
    is_legal_node_id,
)
from domain.workflows.node_config import read_config, read_settings
from domain.workflows.plan import Plan, PlannedNode
from domain.workflows.tool_names import tool_name_faults
from domain.workflows.wiring import MAX_SUGGESTIONS, Wiring, cycles, edges_to_agents, read_edges

MAX_CONFIG_DEPTH = 48
MAX_NAME = 200
MAX_REFERENCES = 5_000
MAX_EXPRESSION_CHARACTERS = 200_000
"""Of all nodes together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A value that other components must check, and its location: `path` in the config of the
    node."""

    node_id: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedText(Placed):
    """A JMESPath expression, or the name of a secret."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSchema(Placed):
    schema: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """The result of a compilation. `plan` is set exactly if there are no `faults`.

    `expressions`, `schemas` and `secrets` must be checked outside the domain. `nodes` are those
    with a valid configuration, whatever is wrong elsewhere.
    """

    plan: Plan | None
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]
    expressions: tuple[PlacedText, ...]
    schemas: tuple[PlacedSchema, ...]
    secrets: tuple[PlacedText, ...]
    nodes: tuple[PlannedNode, ...]


def compile_workflow(definition: WorkflowDefinition) -> Compilation:
    """Compile a definition. Never raises, however wrong the definition is."""
    return _Compiler(definition).compile()


class _Compiler:
    def __init__(self, definition: WorkflowDefinition) -> None:
        self._definition = definition
        self._faults: list[Fault] = []
        self._warnings: list[Fault] = []
        self._expressions: list[PlacedText] = []
        self._schemas: list[PlacedSchema] = []
        self._secrets: list[PlacedText] = []
        self._references: list[tuple[str, str, str]] = []
        self._expression_characters = 0
        self._read: dict[str, PlannedNode] = {}

    def compile(self) -> Compilation:
        if self._is_within_bounds():
            nodes = self._distinct_nodes()
            for node in nodes:
                self._read_node(node)
                if self._refers_too_much():
                    break
            edges = (*self._definition.edges, *edges_to_agents(self._definition.edges, self._read))
            wiring = read_edges(edges, nodes, self._read)
            self._faults += wiring.faults
            self._check_entrypoint()
            self._check_graph(wiring)
            self._check_references(wiring)
            self._faults += tool_name_faults(self._read, wiring)
            self._warn_of_idle_tools(wiring)
            self._connect(wiring)
            self._warnings += scope_warnings(self._read)
        plan = None if self._faults else Plan(nodes=self._in_order())
        return Compilation(
            plan=plan,
            faults=tuple(self._faults),
            warnings=tuple(self._warnings),
            expressions=tuple(self._expressions),
            schemas=tuple(self._schemas),
            secrets=tuple(self._secrets),
            nodes=tuple(self._read.values()),
        )

    def _fault(self, code: FaultCode, message: str, *node_ids: str, path: str = "") -> None:
        self._faults.append(Fault(code=code, message=message, node_ids=node_ids, path=path))

    def _is_within_bounds(self) -> bool:
        definition = self._definition
        if not definition.name.strip() or len(definition.name) > MAX_NAME:
            self._fault(
                FaultCode.NAME_INVALID, f"A workflow needs a name of at most {MAX_NAME} characters.", path="name"
            )
        for what, count, most in (("nodes", definition.nodes, MAX_NODES), ("edges", definition.edges, MAX_EDGES)):
            if len(count) > most:
                self._fault(FaultCode.TOO_LARGE, f"A workflow has at most {most} {what}.", path=what)
                return False
        return True

    def _refers_too_much(self) -> bool:
        """Whether checking all expressions would take too long."""
        count = max(len(self._references), len(self._expressions))
        if count <= MAX_REFERENCES and self._expression_characters <= MAX_EXPRESSION_CHARACTERS:
            return False
        most = f"{MAX_REFERENCES} references, and expressions of {MAX_EXPRESSION_CHARACTERS} characters in all"
        self._fault(FaultCode.TOO_LARGE, f"A workflow has at most {most}.", path="nodes")
        self._expressions.clear()
        return True

    def _distinct_nodes(self) -> tuple[NodeDefinition, ...]:
        distinct: dict[str, NodeDefinition] = {}
        repeated: dict[str, None] = {}
        for node in self._definition.nodes:
            if node.id in distinct:
                repeated[node.id] = None
            else:
                distinct[node.id] = node
        for node_id in repeated:
            self._fault(FaultCode.DUPLICATE_NODE, f"There are several nodes {node_id!r}.", node_id)
        return tuple(distinct.values())

    def _read_node(self, node: NodeDefinition) -> None:
        if not is_legal_node_id(node.id):
            message = f"The node id {node.id!r} must match [A-Za-z_][A-Za-z0-9_-]{{0,63}} and not be 'inputs'."
            self._fault(FaultCode.NODE_ID_INVALID, message, node.id, path="id")
        kinds, modes = [kind.value for kind in NodeKind], [mode.value for mode in NodeMode]
        if node.kind not in kinds:
            message = f"There is no node kind {node.kind!r}{_nearest(node.kind, kinds)}."
            self._fault(FaultCode.UNKNOWN_KIND, message, node.id, path="kind")
        if node.mode not in modes:
            self._fault(
                FaultCode.UNKNOWN_MODE, f"The mode must be normal or tool, not {node.mode!r}.", node.id, path="mode"
            )
        if node.kind not in kinds or node.mode not in modes:
            return
        kind, mode = NodeKind(node.kind), NodeMode(node.mode)
        if mode is NodeMode.TOOL and kind not in TOOL_KINDS:
            message = f"A node of kind {kind} cannot be a tool; {', '.join(TOOL_KINDS)} can."
            self._fault(FaultCode.NOT_A_TOOL, message, node.id, path="mode")
            return
        if mode is NodeMode.NORMAL and kind is NodeKind.NATIVE_TOOL:
            self._fault(FaultCode.UNKNOWN_MODE, "The mode of a native tool is tool.", node.id, path="mode")
            return
        if _is_deeper(node.config, MAX_CONFIG_DEPTH):
            self._fault(FaultCode.CONFIG_INVALID, "The config is nested too deeply.", node.id, path="config")
            return
        reader = ConfigReader(node.config)
        planned = PlannedNode(
            id=node.id,
            kind=kind,
            mode=mode,
            settings=read_settings(reader),
            config=read_config(kind, mode, reader),
        )
        for fault in reader.faults:
            self._fault(
                FaultCode.CONFIG_INVALID, f"{fault.path} {fault.message}.", node.id, path=f"config.{fault.path}"
            )
        self._note(node.id, reader)
        # Nodes with faults are included, so that later checks can report further faults at once.
        self._read[node.id] = planned

    def _note(self, node_id: str, reader: ConfigReader) -> None:
        self._references += [(node_id, path, name) for path, name in reader.references]
        self._expressions += [
            PlacedText(node_id=node_id, path=f"config.{path}", text=text) for path, text in reader.expressions
        ]
        self._expression_characters += sum(len(text) for _, text in reader.expressions)
        self._schemas += [
            PlacedSchema(node_id=node_id, path=f"config.{path}", schema=schema) for path, schema in reader.schemas
        ]
        self._secrets += [
            PlacedText(node_id=node_id, path=f"config.{path}", text=name) for path, name in reader.secrets
        ]

    def _check_entrypoint(self) -> None:
        found = [node.id for node in self._definition.nodes if node.kind == NodeKind.ENTRYPOINT.value]
        if len(dict.fromkeys(found)) != 1:
            said = "There is none" if not found else f"There are {len(found)}: {', '.join(found)}"
            message = f"A workflow has exactly one node of kind entrypoint. {said}."
            self._fault(FaultCode.ENTRYPOINT_COUNT, message, *dict.fromkeys(found))

    def _check_graph(self, wiring: Wiring) -> None:
        for cycle in cycles(tuple(self._read), wiring):
            way = " → ".join((*cycle, cycle[0]))
            self._fault(FaultCode.CYCLE, f"The edges run in a circle: {way}.", *cycle)
        begun = [node.id for node in self._read.values() if isinstance(node.config, EntrypointConfig)]
        if not begun:
            return
        roots = [*begun, *(node.id for node in self._read.values() if node.mode is NodeMode.TOOL)]
        roots = [node_id for node_id in roots if node_id in begun or not wiring.incoming.get(node_id)]
        reached = wiring.downstream_of(roots)
        for node_id in self._read:
            if node_id not in reached:
                self._fault(FaultCode.UNREACHABLE, f"No edge leads from the entrypoint to {node_id!r}.", node_id)

    def _check_references(self, wiring: Wiring) -> None:
        everywhere = {node.id for node in self._definition.nodes}
        for node_id, path, name in dict.fromkeys(self._references):
            place = f"config.{path}"
            if name not in everywhere:
                near = _nearest(name, sorted(everywhere)) if len(self._faults) < MAX_SUGGESTIONS else ""
                message = f"{path} refers to {name!r}, which is not a node{near}."
                self._fault(FaultCode.UNKNOWN_REFERENCE, message, node_id, path=place)
                continue
            named = self._read.get(name)
            if named is None:
                continue
            if named.mode is NodeMode.TOOL:
                message = f"{path} refers to {name!r}, which is a tool and has no output."
                self._fault(FaultCode.REFERENCE_WITHOUT_OUTPUT, message, node_id, name, path=place)
            elif name not in wiring.upstream(node_id):
                message = f"{path} refers to {name!r}, which does not come before {node_id!r}."
                self._fault(FaultCode.REFERENCE_NOT_UPSTREAM, message, node_id, name, path=place)

    def _warn_of_idle_tools(self, wiring: Wiring) -> None:
        for node in self._read.values():
            if node.mode is NodeMode.TOOL and node.id not in wiring.wired_tools:
                message = f"The tool {node.id!r} is wired to no agent."
                self._warnings.append(
                    Fault(code=FaultCode.TOOL_NOT_WIRED, message=message, node_ids=(node.id,), path="")
                )

    def _connect(self, wiring: Wiring) -> None:
        for node_id, node in self._read.items():
            self._read[node_id] = replace(
                node,
                incoming=wiring.incoming.get(node_id, ()),
                connected_tool_node_ids=wiring.tools.get(node_id, ()),
                upstream=wiring.upstream(node_id) - {node_id},
                is_sink=node.mode is NodeMode.NORMAL and not wiring.following.get(node_id),
            )

    def _in_order(self) -> tuple[PlannedNode, ...]:
        """The nodes, each after its upstream nodes and its tools; otherwise in the written
        order."""
        order: dict[str, PlannedNode] = {}
        waiting = list(self._read.values())
        while waiting:
            before = len(waiting)
            held = []
            for node in waiting:
                if all(source in order for source in (*node.predecessors, *node.connected_tool_node_ids)):
                    order[node.id] = node
                else:
                    held.append(node)
            waiting = held
            if len(waiting) == before:
                raise ValueError("a graph with a cycle has no order")
        return tuple(order.values())


def _is_deeper(value: JsonValue, depth: int) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _nearest(name: str, options: list[str]) -> str:
    near = nearest(name, options)
    return f"; did you mean {near!r}" if near is not None else ""


def secret_names(definition: WorkflowDefinition) -> tuple[str, ...]:
    """The names of the secrets that a workflow refers to, sorted."""
    return tuple(sorted({placed.text for placed in compile_workflow(definition).secrets}))
