"""UpdateWorkflow: change a workflow, as a new version."""

from dataclasses import dataclass, field, replace

from application.audit.entries import audit_entry, team_details
from application.system.changes import Changes, changed_fields, with_changes
from application.system.ports import Clock, IdSource
from application.workflows.create_workflow import SavedWorkflow
from application.workflows.ports import WorkflowStore
from application.workflows.workflow_checks import WorkflowChecks
from application.workflows.workflow_lookup import existing_workflow
from domain.audit.event import AuditAction
from domain.errors import require_version
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateWorkflowCommand:
    """`workflow` is an id or a name. `changes` are fields of `WorkflowDefinition`; nodes and edges
    are replaced entirely. `text` is the YAML of the result, if it is to be stored with its
    comments. `expected_version` is the version that the client last read; None skips the check."""

    principal: Principal
    workflow: str
    changes: Changes = field(default_factory=dict)
    text: str | None = None
    expected_version: int | None = None


class UpdateWorkflow:
    """Rules:
    - Requires `admin`. The result must be valid, as for `CreateWorkflow`.
    - Runs already started keep their version and their team.
    - A change of nothing creates no version and no audit entry. Another text of the same definition
      is a change.
    - A changed definition without its text has none: the text before would contradict it.
    - Audited as `workflow.updated` with the names of the changed parts.
    """

    def __init__(self, *, workflows: WorkflowStore, checks: WorkflowChecks, clock: Clock, ids: IdSource) -> None:
        self._workflows = workflows
        self._checks = checks
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateWorkflowCommand) -> SavedWorkflow:
        """The current workflow. Raises FORBIDDEN, NOT_FOUND, INVALID `workflow_invalid`,
        PRECONDITION `version_conflict`, CONFLICT `workflow_name_taken`."""
        principal = command.principal
        principal.require(Permission.WORKFLOWS_MANAGE)
        workflow = await existing_workflow(self._workflows, principal, command.workflow)
        require_version("workflow", workflow.version, expected=command.expected_version)
        before = workflow.definition
        definition = with_changes(before, command.changes)
        if definition == before and command.text in (None, workflow.text):
            checked = await self._checks.check(principal, definition, former_team=workflow.team)
            return SavedWorkflow(workflow=workflow, checked=checked)
        checked = await self._checks.require(principal, definition, former_team=workflow.team)
        now = self._clock.now()
        changed = replace(
            workflow, version=workflow.version + 1, definition=definition, updated_at=now, text=command.text
        )
        audit = audit_entry(
            principal,
            AuditAction.WORKFLOW_UPDATED,
            workflow.id,
            ids=self._ids,
            at=now,
            details={
                "name": definition.name,
                "version": changed.version,
                "changed": [*changed_fields(before, definition)] or ["text"],
                **team_details(workflow.team, changed.team),
            },
        )
        await self._workflows.save(changed, expected_version=workflow.version, audit=audit)
        return SavedWorkflow(workflow=changed, checked=checked)
