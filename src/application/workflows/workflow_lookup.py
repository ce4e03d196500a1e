"""Finds a workflow by id or name."""

from application.workflows.ports import WorkflowStore
from domain.errors import existing
from domain.ids import OrganizationId, WorkflowId
from domain.workflows.graph import Workflow

ID_PREFIX = "wfl_"


async def existing_workflow(workflows: WorkflowStore, organization_id: OrganizationId, id_or_name: str) -> Workflow:
    """The newest version. An id goes before a name. Raises NOT_FOUND `workflow_not_found`."""
    workflow = None
    if id_or_name.startswith(ID_PREFIX):
        workflow = await workflows.get(organization_id, WorkflowId(id_or_name))
    return existing(workflow or await workflows.find(organization_id, id_or_name), "workflow", id_or_name)
