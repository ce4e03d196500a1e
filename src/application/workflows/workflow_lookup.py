"""Finds a workflow by id or name."""

from application.workflows.ports import WorkflowStore
from domain.identity.api_key import Principal
from domain.ids import WorkflowId
from domain.workflows.graph import Workflow

ID_PREFIX = "wfl_"


async def existing_workflow(workflows: WorkflowStore, principal: Principal, id_or_name: str) -> Workflow:
    """The newest version. An id goes before a name. Raises NOT_FOUND `workflow_not_found`, also for
    a workflow of a team that the caller does not see."""
    organization_id = principal.organization_id
    workflow = None
    if id_or_name.startswith(ID_PREFIX):
        workflow = await workflows.get(organization_id, WorkflowId(id_or_name))
    return principal.found(workflow or await workflows.find(organization_id, id_or_name), "workflow", id_or_name)
