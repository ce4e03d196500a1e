"""CreateWorkflow: a workflow at version 1."""

from dataclasses import dataclass

from application.audit.entries import audit_entry, team_details
from application.system.ports import Clock, IdSource
from application.workflows.ports import WorkflowStore
from application.workflows.workflow_checks import CheckedWorkflow, WorkflowChecks
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import WorkflowId
from domain.workflows.graph import Workflow, WorkflowDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWorkflowCommand:
    """`text` is the YAML of the definition, if it is to be stored with its comments."""

    principal: Principal
    definition: WorkflowDefinition
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedWorkflow:
    """The stored workflow and the findings of its check."""

    workflow: Workflow
    checked: CheckedWorkflow


class CreateWorkflow:
    """Rules:
    - Requires `admin`. The name is unique in the organization.
    - The definition must compile, and its agents, servers and secrets must exist; `TeamChecks` has
      the rules of teams. All faults are reported.
    - Audited as `workflow.created`.
    """

    def __init__(self, *, workflows: WorkflowStore, checks: WorkflowChecks, clock: Clock, ids: IdSource) -> None:
        self._workflows = workflows
        self._checks = checks
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateWorkflowCommand) -> SavedWorkflow:
        """Raises FORBIDDEN, INVALID `workflow_invalid`, CONFLICT `workflow_name_taken`."""
        principal = command.principal
        principal.require(Permission.WORKFLOWS_MANAGE)
        checked = await self._checks.require(principal, command.definition)
        now = self._clock.now()
        workflow = Workflow(
            id=WorkflowId(self._ids.new("wfl")),
            organization_id=principal.organization_id,
            version=1,
            definition=command.definition,
            created_at=now,
            updated_at=now,
            text=command.text,
        )
        audit = audit_entry(
            principal,
            AuditAction.WORKFLOW_CREATED,
            workflow.id,
            ids=self._ids,
            at=now,
            details={
                "name": command.definition.name,
                "version": workflow.version,
                **team_details(None, workflow.team),
            },
        )
        await self._workflows.add(workflow, audit)
        return SavedWorkflow(workflow=workflow, checked=checked)
