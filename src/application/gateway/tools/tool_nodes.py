"""ToolNodes: selects the tools of a workflow run for a session, and the agent whose policies
apply."""

from dataclasses import dataclass

from application.workflows.ports import WorkflowRunStore
from application.workflows.run_access import existing_run
from domain.errors import Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.ids import WorkflowRunId
from domain.tools.wired import WiredNodes
from domain.workflows.compiler import compile_workflow
from domain.workflows.graph import AgentNodeConfig, McpServerNodeConfig, NodeMode
from domain.workflows.plan import Plan, PlannedNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenNodes:
    """The tool nodes, and the agent (id or name) that they are wired to. `team` is that of the
    workflow run."""

    nodes: WiredNodes
    agent: str
    is_one_server: bool
    team: str | None


class ToolNodes:
    """Rules:
    - Tool nodes select their tools, an agent node all tools wired to it; no nodes select no tools.
    - One agent must have all of them, and its policies apply: the named agent node, otherwise
      the first agent that has them.
    - An ended workflow run has no tools.
    """

    def __init__(self, *, runs: WorkflowRunStore) -> None:
        self._runs = runs

    async def chosen(self, principal: Principal, run_id: WorkflowRunId, node_ids: tuple[str, ...]) -> ChosenNodes:
        """Raises NOT_FOUND `workflow_run_not_found`, CONFLICT `workflow_run_ended`, INVALID
        `node_ids_invalid`."""
        run = await existing_run(self._runs, principal, run_id)
        if run.status.is_terminal:
            raise conflict("workflow_run_ended", f"The workflow run {run_id} has ended: its tools are gone.")
        plan = compile_workflow(await self._runs.definition(principal.organization_id, run)).plan
        if plan is None:
            raise conflict("workflow_run_ended", "This version of Dragoman does not support the workflow any more.")
        _require_in(plan, node_ids)
        agent, config = _whose(plan, node_ids)
        whole = node_ids == (agent.id,)
        wired = tuple(tool for tool in agent.connected_tool_node_ids if whole or tool in node_ids)
        kinds = [plan.by_id[tool].config for tool in wired]
        return ChosenNodes(
            nodes=WiredNodes(workflow_run_id=run_id, node_ids=wired),
            agent=config.agent,
            is_one_server=len(kinds) == 1 and isinstance(kinds[0], McpServerNodeConfig),
            team=run.team,
        )


def _require_in(plan: Plan, node_ids: tuple[str, ...]) -> None:
    wrong = []
    for index, node_id in enumerate(node_ids):
        node = plan.by_id.get(node_id)
        if node is None:
            wrong.append(Violation(path=f"node_ids.{index}", message=f"{node_id!r} is not a node of the workflow"))
        elif node.mode is not NodeMode.TOOL and not isinstance(node.config, AgentNodeConfig):
            message = f"{node_id!r} is neither a tool nor an agent"
            wrong.append(Violation(path=f"node_ids.{index}", message=message))
        elif node_id in node_ids[:index]:
            wrong.append(Violation(path=f"node_ids.{index}", message=f"{node_id!r} is given twice"))
    if wrong:
        raise _invalid(*wrong)


def _whose(plan: Plan, node_ids: tuple[str, ...]) -> tuple[PlannedNode, AgentNodeConfig]:
    agents = {node.id: (node, config) for node, config in plan.agents}
    named = [node_id for node_id in node_ids if node_id in agents]
    tools = {node_id for node_id in node_ids if node_id not in agents}
    candidates = [agents[node_id] for node_id in named] or list(agents.values())
    having = [found for found in candidates if tools <= set(found[0].connected_tool_node_ids)]
    if len(named) > 1:
        raise _invalid(Violation(path="node_ids", message="names several agents: a session has one agent"))
    if not having:
        whose = f"{named[0]!r} is not wired" if named else "no agent is wired"
        raise _invalid(
            Violation(path="node_ids", message=f"{whose} to all of these tools, so no agent's policies apply")
        )
    return having[0]


def _invalid(*violations: Violation) -> Exception:
    return invalid("node_ids_invalid", "The nodes are not tools of one agent of the workflow.", *violations)
