"""Routes of workflows."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.workflows.create_workflow import CreateWorkflow, CreateWorkflowCommand
from application.workflows.delete_workflow import DeleteWorkflow, DeleteWorkflowCommand
from application.workflows.queries import GetWorkflow, ListWorkflows, ListWorkflowVersions
from application.workflows.update_workflow import UpdateWorkflow, UpdateWorkflowCommand
from application.workflows.validate_workflow import ValidateWorkflow, ValidateWorkflowCommand
from domain.workflows.diagram import mermaid
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import WorkflowPath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.workflows.definition_text import parts_of, read_beside, source_of
from interfaces.http.workflows.result_views import saved_workflow_view, validation_view
from interfaces.http.workflows.schemas import UpdateWorkflowBody, WorkflowBody
from interfaces.http.workflows.views import SavedWorkflowView, ValidationView, WorkflowPage, WorkflowView, workflow_view

TAG = Tag(name="Workflows", description="Graphs of agents, tools and people.")
MERMAID = "text/vnd.mermaid"


@post("/workflows", summary="Create a workflow", responses=documented(403, 409, 413))
async def create_workflow(
    request: ApiRequest, data: JSONBody[WorkflowBody], create_workflow: NamedDependency[CreateWorkflow]
) -> Response[SavedWorkflowView]:
    """Requires the role admin. The response to an invalid workflow lists all faults: of the graph,
    and agents, MCP servers and secrets that do not exist. A `text` that says something else is
    refused."""
    definition, text = data.to_definition(), None
    if data.text is not None:
        definition, text = await read_beside(data.text, parts_of(definition)), source_of(data.text)
    command = CreateWorkflowCommand(principal=request.principal, definition=definition, text=text)
    saved = await create_workflow.execute(command)
    headers = {"Location": f"/v1/workflows/{saved.workflow.id}", **etag(saved.workflow.version)}
    return Response(saved_workflow_view(saved), headers=headers)


@get("/workflows", summary="List workflows", responses=documented())
async def list_workflows(
    *,
    request: ApiRequest,
    list_workflows: NamedDependency[ListWorkflows],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> WorkflowPage:
    """Newest first, each at its newest version."""
    return page_view(
        await list_workflows.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        workflow_view,
    )


@post(
    "/workflows/validate",
    summary="Validate a workflow",
    status_code=200,
    responses=documented(403, 413),
)
async def validate_workflow(
    request: ApiRequest, data: JSONBody[WorkflowBody], validate_workflow: NamedDependency[ValidateWorkflow]
) -> ValidationView:
    """Requires the role admin. The checks of saving a new workflow, without saving; 200 whether or
    not the workflow is valid. A team whose group is gone is a fault, though a stored workflow may
    be saved with the team that it has."""
    definition = data.to_definition()
    checked = await validate_workflow.execute(
        ValidateWorkflowCommand(principal=request.principal, definition=definition)
    )
    return validation_view(checked, definition)


@get("/workflows/{workflow:str}", summary="Read a workflow", responses=documented(404))
async def get_workflow(
    request: ApiRequest, workflow: WorkflowPath, get_workflow: NamedDependency[GetWorkflow]
) -> Response[WorkflowView]:
    """By id or name, at its newest version."""
    found = await get_workflow.execute(principal=request.principal, workflow=workflow)
    return Response(workflow_view(found), headers=etag(found.version))


@get(
    "/workflows/{workflow:str}/diagram",
    summary="Draw a workflow",
    media_type=MERMAID,
    responses=documented(404),
)
async def draw_workflow(
    request: ApiRequest, workflow: WorkflowPath, get_workflow: NamedDependency[GetWorkflow]
) -> Response[str]:
    """The newest version as a Mermaid flowchart."""
    found = await get_workflow.execute(principal=request.principal, workflow=workflow)
    return Response(mermaid(found.definition), media_type=MERMAID, headers=etag(found.version))


@patch("/workflows/{workflow:str}", summary="Change a workflow", responses=documented(403, 404, 409, 412, 413))
async def update_workflow(
    *,
    request: ApiRequest,
    workflow: WorkflowPath,
    data: JSONBody[UpdateWorkflowBody],
    update_workflow: NamedDependency[UpdateWorkflow],
    if_match: IfMatch = None,
) -> Response[SavedWorkflowView]:
    """Requires the role admin. Creates a new version. A `text` that says something else than the
    other fields is refused; a change without it drops the text of the version before. A `text`
    without `team` gives the workflow to the organization."""
    changes, text = data.to_changes(), None
    if data.text is not None:
        changes, text = parts_of(await read_beside(data.text, changes)), source_of(data.text)
    saved = await update_workflow.execute(
        UpdateWorkflowCommand(
            principal=request.principal,
            workflow=workflow,
            changes=changes,
            text=text,
            expected_version=expected_version(if_match),
        )
    )
    return Response(saved_workflow_view(saved), headers=etag(saved.workflow.version))


@delete("/workflows/{workflow:str}", summary="Delete a workflow", responses=documented(403, 404))
async def delete_workflow(
    request: ApiRequest, workflow: WorkflowPath, delete_workflow: NamedDependency[DeleteWorkflow]
) -> None:
    """Requires the role admin. Its name becomes free."""
    await delete_workflow.execute(DeleteWorkflowCommand(principal=request.principal, workflow=workflow))


@get(
    "/workflows/{workflow:str}/versions",
    summary="List the versions of a workflow",
    responses=documented(404),
)
async def list_workflow_versions(
    *,
    request: ApiRequest,
    workflow: WorkflowPath,
    list_workflow_versions: NamedDependency[ListWorkflowVersions],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> WorkflowPage:
    """Newest first."""
    return page_view(
        await list_workflow_versions.execute(
            principal=request.principal, workflow=workflow, page=PageRequest(limit=limit, cursor=cursor)
        ),
        workflow_view,
    )
