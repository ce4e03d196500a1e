"""DeleteWorkflow: remove a workflow from use."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.system.ports import Clock, IdSource
from application.workflows.ports import WorkflowStore
from application.workflows.workflow_lookup import existing_workflow
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWorkflowCommand:
    """`workflow` is an id or a name."""

    principal: Principal
    workflow: str


class DeleteWorkflow:
    """Rules: requires `admin`; the name becomes free. Audited as `workflow.deleted`."""

    def __init__(self, *, workflows: WorkflowStore, clock: Clock, ids: IdSource) -> None:
        self._workflows = workflows
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteWorkflowCommand) -> None:
        """Raises FORBIDDEN, NOT_FOUND."""
        principal = command.principal
        principal.require(Permission.WORKFLOWS_MANAGE)
        workflow = await existing_workflow(self._workflows, principal, command.workflow)
        audit = audit_entry(
            principal,
            AuditAction.WORKFLOW_DELETED,
            workflow.id,
            ids=self._ids,
            at=self._clock.now(),
            details={"name": workflow.definition.name, "version": workflow.version},
        )
        if not await self._workflows.delete(principal.organization_id, workflow.id, audit):
            raise not_found("workflow", command.workflow)
