"""ResumeWorkflowRun: answer the nodes of a workflow run that wait for a person."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.runs.ports import RunQueue
from application.system.ports import Clock, IdSource
from application.tools.ports import SchemaValidator
from application.workflows.ports import WorkflowRunStore
from application.workflows.run_access import require_own_or_operator
from domain.audit.event import AuditAction
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import RunId, WorkflowRunId
from domain.json_value import JsonValue
from domain.workflows.run import WorkflowRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeWorkflowRunCommand:
    """Answers by node id."""

    principal: Principal
    run_id: WorkflowRunId
    answers: Mapping[str, JsonValue]


class ResumeWorkflowRun:
    """Rules: a runner answers in the runs it started, an operator in any; each answer fits the schema that its node asked
    for; all are taken or none. Nodes that are not answered go on waiting. Audited `workflow.run_resumed`."""

    def __init__(
        self,
        *,
        runs: WorkflowRunStore,
        schemas: SchemaValidator,
        queue: RunQueue,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._runs = runs
        self._schemas = schemas
        self._queue = queue
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ResumeWorkflowRunCommand) -> WorkflowRun:
        """The run, QUEUED. Raises NOT_FOUND, FORBIDDEN, CONFLICT `workflow_run_not_waiting`, `node_not_waiting`, INVALID
        `answers_invalid`."""
        principal = command.principal
        run = await require_own_or_operator(self._runs, principal, command.run_id)
        self._check(run, command.answers)
        now = self._clock.now()
        answered_nodes: list[JsonValue] = [*sorted(command.answers)]
        audit = audit_entry(
            principal,
            AuditAction.WORKFLOW_RUN_RESUMED,
            run.id,
            ids=self._ids,
            at=now,
            details={"nodes": answered_nodes},
        )
        answered = await self._runs.answer(principal.organization_id, run.id, command.answers, at=now, audit=audit)
        await self._queue.submit(RunId(run.id))
        return answered

    def _check(self, run: WorkflowRun, answers: Mapping[str, JsonValue]) -> None:
        wrong = []
        if not answers:
            wrong.append(Violation(path="answers", message="must not be empty"))
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
            raise invalid("answers_invalid", "The answers are not what was asked for.", *wrong)
