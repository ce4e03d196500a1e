"""Inputs and outcomes of executing a node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.workflows.ports import ExpressionFailed, Expressions
from application.workflows.template_filling import filled
from domain.audit.event import AuditEvent
from domain.ids import ApiKeyId, OrganizationId, RunId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.tools.wired import RegisteredTool
from domain.workflows.account_wait import AccountWait
from domain.workflows.execution import NodeError, NodeRun, NodeStatus
from domain.workflows.plan import Plan, PlannedNode, calls_same_tool
from domain.workflows.run import WorkflowRun
from domain.workflows.templates import MAX_FILLED, FilledTooLarge

INPUT_TOO_LARGE = "input_too_large"
INPUT_TOO_LARGE_DETAIL = f"The input of the node is larger than {MAX_FILLED // (1024 * 1024)} MiB."


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """The node is done; `handle` is the output handle of a condition."""

    output: JsonValue
    handle: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsAnswer:
    """The node waits for a person until `due_at`, for their answer or their account, or for an
    agent's run suspended at event `run_seq`."""

    asked: JsonValue
    due_at: datetime | None
    run_seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The node is ready as a tool of its workflow run."""

    tool: RegisteredTool


class NodeFailed(Exception):
    """An expected failure of a node."""

    def __init__(self, code: str, detail: str, *, retryable: bool = False) -> None:
        super().__init__(detail)
        self.error = NodeError(code=code, detail=detail, retryable=retryable)


class NoteRun(Protocol):
    """Records the agent's run of a node."""

    async def __call__(self, node_id: str, run_id: RunId) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """The run in which a node executes, of this `team`. `nodes` are all nodes of the run in their
    current state, `plan` is what the run executes."""

    organization_id: OrganizationId
    workflow_run_id: WorkflowRunId
    requested_by: ApiKeyId
    run_input: JsonValue
    nodes: Mapping[str, NodeRun]
    plan: Plan = Plan(nodes=())
    team: str | None = None
    note_run: NoteRun
    note_audit: Callable[[AuditEvent], None]
    """Collects audit entries of the node; they are stored with its outcome."""

    def calls_before(self, node: PlannedNode, run: NodeRun) -> int:
        """How often steps of this run have called the node's MCP tool: earlier attempts of the
        node, and all attempts of other nodes that are over or began before it."""
        return (
            run.attempt
            - 1
            + sum(
                other.attempt
                for each in self.plan.nodes
                if each.id != node.id
                and calls_same_tool(each, node)
                and (other := self.nodes.get(each.id)) is not None
                and (other.status is not NodeStatus.RUNNING or _order(other) < _order(run))
            )
        )

    def outputs(self, node: PlannedNode) -> dict[str, JsonValue]:
        """Outputs of the upstream nodes by id; null where there is none."""
        return {
            node_id: run.output
            for node_id in node.upstream
            if (run := self.nodes.get(node_id)) is not None and run.status is NodeStatus.SUCCEEDED
        }

    async def given(self, node: PlannedNode, template: JsonValue, expressions: Expressions) -> JsonValue:
        """The node's input: its template, or the outputs of its predecessors (by id if several).
        Raises NodeFailed `expression_failed`, `expression_too_costly`, `input_too_large`."""
        if template is not None:
            return await self.filled(node, template, expressions)
        outputs = self.outputs(node)
        before = node.predecessors
        if len(before) == 1:
            return outputs.get(before[0])
        gathered: JsonObject = {node_id: outputs[node_id] for node_id in before if node_id in outputs}
        return gathered

    async def filled(self, node: PlannedNode, template: JsonValue, expressions: Expressions) -> JsonValue:
        """A template with its references replaced. Raises NodeFailed as `given` does."""
        try:
            return await filled(template, self.outputs(node), expressions)
        except ExpressionFailed as error:
            raise NodeFailed(error.code, str(error)) from error
        except FilledTooLarge as error:
            raise NodeFailed(INPUT_TOO_LARGE, INPUT_TOO_LARGE_DETAIL) from error


def _order(run: NodeRun) -> tuple[float, str]:
    return (0.0 if run.started_at is None else run.started_at.timestamp()), run.node_id


class NodeExecutor(Protocol):
    """Executes nodes of one kind. Raises NodeFailed. Cancelling `execute` stops the work."""

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded | AwaitsAnswer: ...


class ToolRegistrar(Protocol):
    """Executes nodes in tool mode."""

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Registered:
        """Register the tool. Idempotent. Raises NodeFailed."""

    async def release(self, run: WorkflowRun, plan: Plan) -> None:
        """The run has ended: release what its tools hold outside of storage. Never raises."""


class AgentExecutor(NodeExecutor, Protocol):
    """Executes nodes that are runs of agents."""

    async def has_moved_on(self, organization_id: OrganizationId, run_id: RunId, *, since_seq: int) -> bool:
        """Whether the run is no longer suspended at event `since_seq`."""

    async def moved_on(self, organization_id: OrganizationId, run_id: RunId, *, since_seq: int) -> None:
        """Wait until `has_moved_on`."""

    async def cancel(self, organization_id: OrganizationId, run_id: RunId, *, actor: str) -> None:
        """Cancel the run of an abandoned node."""


class AccountWaits(Protocol):
    """Accounts that the person who started a workflow run must connect."""

    async def is_connected(self, run: WorkflowRun, wanted: AccountWait) -> bool:
        """Whether the node need not wait any more."""

    async def connected_in(self, run: WorkflowRun, wanted: AccountWait) -> None:
        """Wait until `is_connected`."""

    async def began_to_wait(self, run: WorkflowRun) -> None:
        """Continue the run, which was just suspended, if an account was connected in the
        meantime."""
