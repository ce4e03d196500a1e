"""Workflows and their versions in memory."""

from dataclasses import replace

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import conflict, not_found, require_version
from domain.ids import OrganizationId, WorkflowId
from domain.workflows.graph import Workflow
from tests.doubles.owners import require_group, seen
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryWorkflowStore:
    """The `WorkflowStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, workflow: Workflow, audit: AuditEvent) -> None:
        """Store a new workflow."""
        require_group(self._state, workflow.organization_id, workflow.team)
        self._refuse_taken_name(workflow)
        self._state.workflows[workflow.id] = [workflow]
        self._state.record(audit)

    async def save(self, workflow: Workflow, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a new version."""
        stored = await self.get(workflow.organization_id, workflow.id)
        if stored is None:
            raise not_found("workflow", workflow.id)
        require_version("workflow", stored.version, expected=expected_version)
        require_group(self._state, workflow.organization_id, workflow.team, former=stored.team)
        self._refuse_taken_name(workflow)
        self._state.workflows[workflow.id].append(workflow)
        self._state.record(audit)

    async def get(self, organization_id: OrganizationId, workflow_id: WorkflowId) -> Workflow | None:
        """The newest version, or None."""
        found = self._state.workflows_in_use(organization_id)
        return next((workflow for workflow in found if workflow.id == workflow_id), None)

    async def version(self, organization_id: OrganizationId, workflow_id: WorkflowId, version: int) -> Workflow | None:
        """That version, or None."""
        if await self.get(organization_id, workflow_id) is None:
            return None
        return next((each for each in self._state.workflows[workflow_id] if each.version == version), None)

    async def find(self, organization_id: OrganizationId, name: str) -> Workflow | None:
        """The newest version of the workflow of that name, or None."""
        found = self._state.workflows_in_use(organization_id)
        return next((workflow for workflow in found if workflow.definition.name == name), None)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Workflow]:
        """Workflows at their newest version, newest workflow first."""
        found = [replace(workflow, text=None) for workflow in self._state.workflows_in_use(organization_id)]
        found = seen(self._state, request.teams, found, lambda workflow: workflow.id)
        return newest_first(found, lambda workflow: by_time(workflow.created_at, workflow.id), request)

    async def versions(
        self, organization_id: OrganizationId, workflow_id: WorkflowId, request: PageRequest
    ) -> Page[Workflow]:
        """All versions of one workflow, newest first."""
        stored = self._state.workflows.get(workflow_id, [])
        own = [replace(workflow, text=None) for workflow in stored if workflow.organization_id == organization_id]
        return newest_first(own, lambda workflow: (f"{workflow.version:012d}", workflow.id), request)

    async def delete(self, organization_id: OrganizationId, workflow_id: WorkflowId, audit: AuditEvent) -> bool:
        """Remove the workflow from use."""
        if await self.get(organization_id, workflow_id) is None:
            return False
        self._state.deleted_workflows[workflow_id] = audit.at
        self._state.record(audit)
        return True

    def _refuse_taken_name(self, workflow: Workflow) -> None:
        for other in self._state.workflows_in_use(workflow.organization_id):
            if other.definition.name == workflow.definition.name and other.id != workflow.id:
                raise conflict("workflow_name_taken", f"There is a workflow {workflow.definition.name!r} already.")
