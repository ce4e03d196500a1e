"""Workflows for tests: nodes and edges in few words."""

from domain.ids import ApiKeyId, OrganizationId, WorkflowId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.workflows.compiler import Compilation, compile_workflow
from domain.workflows.execution import NodeRun
from domain.workflows.graph import Edge, NodeDefinition, Workflow, WorkflowDefinition
from domain.workflows.plan import Plan
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from tests.builders import KEY, ORG, START

WORKFLOW = WorkflowId("wfl_1")
WORKFLOW_RUN = WorkflowRunId("wfr_1")

WEATHER: JsonObject = {
    "url": "https://weather.example/{{inputs.city}}",
    "headers": {"Authorization": "Bearer {{inputs.token}}"},
    "inputs": {"city": {"type": "string"}, "token": {"type": "string"}},
    "tool": {
        "name": "weather",
        "description": "The weather in a city.",
        "bound": {"token": {"secret": "WEATHER_TOKEN"}},
        "exposed": ["city"],
    },
}


def entrypoint(node_id: str = "start") -> NodeDefinition:
    """Where it begins."""
    return NodeDefinition(id=node_id, kind="entrypoint")


def agent(node_id: str, agent_name: str = "guide", /, **config: object) -> NodeDefinition:
    """A run of an agent."""
    return node(node_id, "agent", agent=agent_name, **config)


def transform(node_id: str, expression: str = "@", /, **config: object) -> NodeDefinition:
    """A JMESPath expression."""
    return node(node_id, "transform", expression=expression, **config)


def tool(node_id: str, name: str = "weather", /, **config: object) -> NodeDefinition:
    """A component in tool mode."""
    settings = {**WEATHER["tool"], "name": name} if isinstance(WEATHER["tool"], dict) else {}
    return node(node_id, "http_request", "tool", **{**WEATHER, "tool": settings, **config})


def node(node_id: str, kind: str, mode: str = "normal", /, **config: object) -> NodeDefinition:
    """Any node."""
    return NodeDefinition(id=node_id, kind=kind, mode=mode, config=config)  # type: ignore[arg-type]


def edge(way: str) -> Edge:
    """`a -> b`, `a.true -> b`, `search -> writer.tools`."""
    source, _, target = (part.strip() for part in way.partition("->"))
    source, _, source_handle = source.partition(".")
    target, _, target_handle = target.partition(".")
    return Edge(source=source, source_handle=source_handle, target=target, target_handle=target_handle or "input")


def workflow(*parts: NodeDefinition | str, name: str = "story", team: str | None = None) -> WorkflowDefinition:
    """Nodes and edges, in any order."""
    return WorkflowDefinition(
        name=name,
        nodes=tuple(part for part in parts if isinstance(part, NodeDefinition)),
        edges=tuple(edge(part) for part in parts if isinstance(part, str)),
        team=team,
    )


def compiled(*parts: NodeDefinition | str) -> Compilation:
    """What the compiler makes of it."""
    return compile_workflow(workflow(*parts))


def planned(*parts: NodeDefinition | str) -> Plan:
    """The plan of a workflow that is right."""
    compilation = compiled(*parts)
    assert compilation.plan is not None, compilation.faults
    return compilation.plan


def a_workflow(
    *parts: NodeDefinition | str, version: int = 1, name: str = "story", team: str | None = None
) -> Workflow:
    """A saved workflow of ORG."""
    return Workflow(
        id=WORKFLOW,
        organization_id=ORG,
        version=version,
        definition=workflow(*parts, name=name, team=team),
        created_at=START,
        updated_at=START,
    )


def a_workflow_run(
    *nodes: NodeRun,
    id: WorkflowRunId = WORKFLOW_RUN,
    status: WorkflowRunStatus = WorkflowRunStatus.QUEUED,
    input: JsonValue = None,
    requested_by: ApiKeyId = KEY,
    organization_id: OrganizationId = ORG,
    team: str | None = None,
) -> WorkflowRun:
    """A run of `a_workflow` at version 1."""
    return WorkflowRun(
        id=id,
        organization_id=organization_id,
        workflow_id=WORKFLOW,
        workflow_version=1,
        status=status,
        input=input,
        requested_by=requested_by,
        created_at=START,
        nodes={node.node_id: node for node in nodes},
        team=team,
    )
