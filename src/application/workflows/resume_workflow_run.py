"""ResumeWorkflowRun: answer nodes that wait for a person, or resume the suspended run of an
agent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.policy.ports import SchemaValidator
from application.runs.ports import RunQueue
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from application.system.ports import Clock, IdSource
from application.workflows.ports import WorkflowRunStore
from application.workflows.run_access import require_own_or_operator
from domain.approvals.decision import CallDecision
from domain.audit.event import AuditAction
from domain.errors import ServiceError, Violation, conflict, invalid, not_found
from domain.identity.api_key import Principal
from domain.ids import RunId, WorkflowRunId
from domain.json_value import JsonValue
from domain.runs.run import Run
from domain.workflows.run import NOT_WAITING, WorkflowRun


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNodeAnswer:
    """Input for the suspended run of an agent: client tool results, server answers, call
    decisions."""

    node_id: str
    tool_results: tuple[ClientToolResult, ...] = ()
    approvals: tuple[CallDecision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeWorkflowRunCommand:
    """Answers by node id, or the input for one agent's run."""

    principal: Principal
    run_id: WorkflowRunId
    answers: Mapping[str, JsonValue] = field(default_factory=dict)
    agent: AgentNodeAnswer | None = None


class ResumeWorkflowRun:
    """Rules:
    - Requires `runner` for the caller's own runs, `operator` for others.
    - Each answer must fit the schema of its node. All answers are accepted or none.
    - Nodes without an answer keep waiting.
    - An agent's run is resumed by the rules of `ResumeRun`, one node per request. While other
      people must approve its calls, too, the workflow run is not resumed.
    - Audited as `workflow.run_resumed`.
    """

    def __init__(
        self,
        *,
        runs: WorkflowRunStore,
        resume_run: ResumeRun,
        schemas: SchemaValidator,
        queue: RunQueue,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._runs = runs
        self._resume_run = resume_run
        self._schemas = schemas
        self._queue = queue
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ResumeWorkflowRunCommand) -> WorkflowRun:
        """The run: QUEUED, or as it still waits. Raises NOT_FOUND, FORBIDDEN, CONFLICT
        `workflow_run_not_waiting`, `node_not_waiting`, INVALID `answers_invalid`, and for an
        agent's run what `ResumeRun` raises."""
        principal = command.principal
        run = await require_own_or_operator(self._runs, principal, command.run_id)
        self._check(run, command)
        if command.agent is not None:
            return await self._resume_agent(principal, run, command.agent)
        answered = await self._answer(principal, run, command.answers)
        await self._queue.submit(RunId(run.id))
        return answered

    async def _resume_agent(self, principal: Principal, run: WorkflowRun, given: AgentNodeAnswer) -> WorkflowRun:
        node = run.nodes.get(given.node_id)
        waits_for = None if node is None else node.waits_for_run
        if run.status.is_terminal or waits_for is None:
            raise conflict("node_not_waiting", f"The node {given.node_id!r} does not wait for calls of an agent.")
        agents_run = await self._resume_run.execute(
            ResumeRunCommand(
                principal=principal, run_id=waits_for, tool_results=given.tool_results, approvals=given.approvals
            )
        )
        if _decided_nothing(agents_run, given):
            return run
        try:
            resumed = await self._answer(principal, run, {}, node_ids=(given.node_id,))
        except ServiceError as error:
            if error.code != NOT_WAITING:
                raise
            # A worker already knows that the agent's run resumed.
            return await require_own_or_operator(self._runs, principal, run.id)
        await self._queue.submit(RunId(run.id))
        return resumed

    async def _answer(
        self,
        principal: Principal,
        run: WorkflowRun,
        answers: Mapping[str, JsonValue],
        *,
        node_ids: tuple[str, ...] = (),
    ) -> WorkflowRun:
        now = self._clock.now()
        answered_nodes: list[JsonValue] = [*sorted(answers), *node_ids]
        audit = audit_entry(
            principal,
            AuditAction.WORKFLOW_RUN_RESUMED,
            run.id,
            ids=self._ids,
            at=now,
            details={"nodes": answered_nodes},
        )
        answered = await self._runs.change(
            principal.organization_id, run.id, lambda stored: stored.answered(answers, at=now), at=now, audit=audit
        )
        if answered is None:
            raise not_found("workflow run", run.id)
        return answered

    def _check(self, run: WorkflowRun, command: ResumeWorkflowRunCommand) -> None:
        wrong = []
        answers = command.answers
        if not answers and command.agent is None:
            wrong.append(Violation(path="answers", message="must not be empty"))
        if answers and command.agent is not None:
            wrong.append(Violation(path="node_id", message="must not be given together with answers"))
        for index, (node_id, answer) in enumerate(answers.items()):
            node = run.nodes.get(node_id)
            asked = None if node is None else node.asked
            schema = asked.get("schema") if isinstance(asked, dict) else None
            if isinstance(schema, dict):
                wrong += [
                    Violation(path=f"answers.{index}.answer", message=sentence)
                    for sentence in self._schemas.violations(schema, answer)
                ]
        if wrong:
            raise invalid("answers_invalid", "The answers do not fit the nodes that wait.", *wrong)


def _decided_nothing(agents_run: Run, given: AgentNodeAnswer) -> bool:
    """Whether all named calls wait for the approvals of other people, too."""
    waiting = {use.id for use in agents_run.pending if use.approval is not None}
    return not given.tool_results and all(decision.tool_call_id in waiting for decision in given.approvals)
