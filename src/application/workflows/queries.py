"""Reading workflows: one, a page of them, the versions of one."""

from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.workflows.ports import WorkflowStore
from application.workflows.workflow_lookup import existing_workflow
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.workflows.graph import Workflow


class GetWorkflow:
    """Requires `viewer`."""

    def __init__(self, *, workflows: WorkflowStore) -> None:
        self._workflows = workflows

    async def execute(self, principal: Principal, workflow: str, version: int | None = None) -> Workflow:
        """The newest version, or that one. `workflow` is an id or a name. Raises FORBIDDEN,
        NOT_FOUND."""
        principal.require(Role.VIEWER)
        newest = await existing_workflow(self._workflows, principal, workflow)
        if version is None or version == newest.version:
            return newest
        found = await self._workflows.version(principal.organization_id, newest.id, version)
        return existing(found, "workflow version", str(version))


class ListWorkflows:
    """Requires `viewer`."""

    def __init__(self, *, workflows: WorkflowStore) -> None:
        self._workflows = workflows

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[Workflow]:
        """Workflows at their newest version without `text`, newest workflow first. Raises
        FORBIDDEN."""
        principal.require(Role.VIEWER)
        return await self._workflows.page(principal.organization_id, page.seen_by(principal))


class ListWorkflowVersions:
    """Requires `viewer`."""

    def __init__(self, *, workflows: WorkflowStore) -> None:
        self._workflows = workflows

    async def execute(self, principal: Principal, workflow: str, page: PageRequest = FIRST_PAGE) -> Page[Workflow]:
        """Versions without `text`, newest first. `workflow` is an id or a name. Raises FORBIDDEN,
        NOT_FOUND."""
        principal.require(Role.VIEWER)
        found = await existing_workflow(self._workflows, principal, workflow)
        return await self._workflows.versions(principal.organization_id, found.id, page)
