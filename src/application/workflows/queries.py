"""Reading workflows: one, a page of them, the versions of one."""

from dataclasses import dataclass

from application.system.pages import Page, PageRequest
from application.workflows.ports import WorkflowStore
from application.workflows.workflow_lookup import existing_workflow
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.workflows.graph import Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class GetWorkflowCommand:
    """`workflow` is an id or a name."""

    principal: Principal
    workflow: str


class GetWorkflow:
    """Viewers read workflows of their organization."""

    def __init__(self, *, workflows: WorkflowStore) -> None:
        self._workflows = workflows

    async def execute(self, command: GetWorkflowCommand) -> Workflow:
        """The newest version. Raises FORBIDDEN, NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        return await existing_workflow(self._workflows, command.principal.organization_id, command.workflow)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWorkflowsCommand:
    """Which page."""

    principal: Principal
    page: PageRequest = PageRequest()


class ListWorkflows:
    """Viewers see the workflows of their organization, newest first."""

    def __init__(self, *, workflows: WorkflowStore) -> None:
        self._workflows = workflows

    async def execute(self, command: ListWorkflowsCommand) -> Page[Workflow]:
        """One page, each at its newest version. Raises FORBIDDEN."""
        command.principal.require(Role.VIEWER)
        return await self._workflows.page(command.principal.organization_id, command.page)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWorkflowVersionsCommand:
    """`workflow` is an id or a name."""

    principal: Principal
    workflow: str
    page: PageRequest = PageRequest()


class ListWorkflowVersions:
    """Viewers see what a workflow was, newest version first."""

    def __init__(self, *, workflows: WorkflowStore) -> None:
        self._workflows = workflows

    async def execute(self, command: ListWorkflowVersionsCommand) -> Page[Workflow]:
        """One page. Raises FORBIDDEN, NOT_FOUND."""
        principal = command.principal
        principal.require(Role.VIEWER)
        workflow = await existing_workflow(self._workflows, principal.organization_id, command.workflow)
        return await self._workflows.versions(principal.organization_id, workflow.id, command.page)
