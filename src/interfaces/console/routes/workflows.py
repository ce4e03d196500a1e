"""Workflows: the list, one with its graph, its definition to check and save, and starting a run."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.system.pages import PageRequest
from application.workflows.create_workflow import CreateWorkflow, CreateWorkflowCommand
from application.workflows.delete_workflow import DeleteWorkflow, DeleteWorkflowCommand
from application.workflows.ports import WorkflowRunFilter
from application.workflows.queries import GetWorkflow, ListWorkflows, ListWorkflowVersions
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns
from application.workflows.start_workflow_run import StartWorkflowRun, StartWorkflowRunCommand
from application.workflows.update_workflow import UpdateWorkflow, UpdateWorkflowCommand
from application.workflows.validate_workflow import ValidateWorkflow, ValidateWorkflowCommand
from domain.errors import ErrorKind, ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import WorkflowRunId
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.workflows.compiler import compile_workflow
from domain.workflows.graph import EntrypointConfig, Workflow, WorkflowDefinition
from domain.workflows.plan import Plan
from domain.workflows.run import WorkflowRun
from interfaces.console.canvas import CanvasChoices, forms_text, graph_text, node_titles, places
from interfaces.console.faults import FormCheck, entered_version
from interfaces.console.json_text import JsonTextError, json_of
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.questions import content_of, fields_of
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.workflow_text import text_of_version
from interfaces.console_paths import PATH
from interfaces.http.workflows.definition_text import definition_of, parts_of, source_of
from interfaces.http.workflows.result_views import validation_view
from interfaces.http.workflows.views import FaultView

PAGE = 100
RECENT = 20
_AT_ONCE = 8
BEGINNING = """name: workflow
nodes:
  - id: start
    kind: entrypoint
edges: []
"""
"""Initial text of a new workflow."""


class WorkflowPages:
    """Data of a workflow's page."""

    def __init__(
        self,
        *,
        get_workflow: GetWorkflow,
        list_workflow_versions: ListWorkflowVersions,
        list_workflow_runs: ListWorkflowRuns,
        get_workflow_run: GetWorkflowRun,
    ) -> None:
        self._get = get_workflow
        self._versions = list_workflow_versions
        self._runs = list_workflow_runs
        self._run = get_workflow_run

    async def of(self, principal: Principal, workflow: str, version: int | None) -> dict[str, object]:
        """The newest version, or that one. Raises NOT_FOUND."""
        newest = await self._get.execute(principal=principal, workflow=workflow)
        versions = (
            await self._versions.execute(principal=principal, workflow=newest.id, page=PageRequest(limit=PAGE))
        ).items
        shown = newest
        if version is not None:
            shown = await self._get.execute(principal=principal, workflow=newest.id, version=version)
        wanted = WorkflowRunFilter(workflow_id=newest.id, status=None)
        runs = await self._runs.execute(principal, wanted, PageRequest(limit=RECENT))
        compilation = compile_workflow(shown.definition)
        schema = _input_schema(compilation.plan)
        return {
            "workflow": shown,
            "newest": newest.version,
            "versions": versions,
            "runs": runs.items,
            "inputs": await inputs_of(self._run, principal, runs.items),
            "graph": graph_text(shown.definition),
            "plan": compilation.plan,
            "nodes": nodes_of(shown.definition),
            "definition": await asyncio.to_thread(text_of_version, shown),
            "schema": schema,
            "input_fields": fields_of(schema or {}),
            "schema_digest": canonical_digest(schema),
            "may_run": principal.may(Permission.RUNS_START),
            "may_change": principal.may(Permission.WORKFLOWS_MANAGE),
        }


async def inputs_of(
    get_workflow_run: GetWorkflowRun, principal: Principal, runs: Sequence[WorkflowRun]
) -> dict[WorkflowRunId, JsonValue]:
    """The input of each run, by which lists name it: lists leave it out. Runs that were removed
    meanwhile have none."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def read(run: WorkflowRun) -> JsonValue:
        try:
            async with places:
                return (await get_workflow_run.execute(principal, run.id)).input
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    return dict(zip((run.id for run in runs), await asyncio.gather(*map(read, runs)), strict=True))


def _input_schema(plan: Plan | None) -> JsonObject | None:
    """The schema that the entry point gives for the input of a run."""
    config = None if plan is None else plan.entrypoint.config
    return config.schema if isinstance(config, EntrypointConfig) else None


def nodes_of(definition: WorkflowDefinition) -> list[dict[str, object]]:
    """Each node with its title and its connections as text, an alternative to the graph."""
    titles = node_titles()
    return [
        {
            "node": node,
            "title": titles.get((node.kind, node.mode), node.kind),
            "onward": [edge for edge in definition.edges if edge.source == node.id],
        }
        for node in definition.nodes
    ]


@get("/workflows")
async def show_workflows(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_workflows: NamedDependency[ListWorkflows],
    list_workflow_runs: NamedDependency[ListWorkflowRuns],
    get_workflow_run: NamedDependency[GetWorkflowRun],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Workflows, newest first, and the latest runs."""
    principal = request.principal
    found = await list_workflows.execute(principal=principal, page=PageRequest(limit=PAGE, cursor=cursor))
    everything = WorkflowRunFilter(workflow_id=None, status=None)
    runs = await list_workflow_runs.execute(principal, everything, PageRequest(limit=RECENT))
    names = {each.id: each.definition.name for each in found.items}
    for run in runs.items:
        if run.workflow_id not in names:  # of another page, or deleted
            names[run.workflow_id] = (await get_workflow_run.definition(principal, run)).name
    context = {
        "workflows": found.items,
        "next_cursor": found.next_cursor,
        "runs": runs.items,
        "names": names,
        "inputs": await inputs_of(get_workflow_run, principal, runs.items),
        "may_change": principal.may(Permission.WORKFLOWS_MANAGE),
    }
    return pages.show(request, "workflows.html", context)


@get("/workflows/new")
async def show_new_workflow(
    request: ConsoleRequest, pages: NamedDependency[Pages], canvas_choices: NamedDependency[CanvasChoices]
) -> Response[str]:
    request.principal.require(Permission.WORKFLOWS_MANAGE)
    return pages.show(request, "workflow_form.html", await _form(request, canvas_choices, None, BEGINNING))


@post("/workflows/check", status_code=200)
async def check_workflow(
    *, request: ConsoleRequest, data: Form, validate_workflow: NamedDependency[ValidateWorkflow]
) -> Response[JsonObject]:
    """All faults, and places for the canvas, without saving. A text that is no definition has
    faults without nodes."""
    principal, workflow = request.principal, data.get("workflow", "new")
    principal.require(Permission.WORKFLOWS_MANAGE)
    try:
        definition = await definition_of(data.get("definition", ""))
    except ServiceError as error:
        if error.kind is not ErrorKind.INVALID:
            raise
        told = error.violations or (Violation(path="", message=error.detail),)
        return Response({"unreadable": [f"{each.path} {each.message}".strip() for each in told]}, headers=HEADERS)
    command = ValidateWorkflowCommand(
        principal=principal, definition=definition, workflow=None if workflow == "new" else workflow
    )
    checked = await validate_workflow.execute(command)
    view = validation_view(checked, definition)
    shown = {"errors": view["errors"], "warnings": view["warnings"], "places": places(definition)}
    return Response(cast("JsonObject", shown), headers=HEADERS)


@post("/workflows/new", status_code=200)
async def create_workflow(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    validate_workflow: NamedDependency[ValidateWorkflow],
    create_workflow: NamedDependency[CreateWorkflow],
) -> Response[str]:
    """Save a new workflow, or report all faults."""
    principal = request.principal
    principal.require(Permission.WORKFLOWS_MANAGE)
    with FormCheck() as check:
        definition = await definition_of(data.get("definition", ""))
        checked = await validate_workflow.execute(ValidateWorkflowCommand(principal=principal, definition=definition))
        if checked.faults:
            view = validation_view(checked, definition)
            return _checked(pages, request, view["errors"], view["warnings"])
        saved = await create_workflow.execute(
            CreateWorkflowCommand(
                principal=principal, definition=definition, text=source_of(data.get("definition", ""))
            )
        )
        return _to(f"/workflows/{saved.workflow.id}")
    return check.shown(pages, request)


@get("/workflows/{workflow:str}")
async def show_workflow(
    *,
    request: ConsoleRequest,
    workflow: FromPath[str],
    pages: NamedDependency[Pages],
    workflow_pages: NamedDependency[WorkflowPages],
    version: FromQuery[int | None] = None,
) -> Response[str]:
    return pages.show(request, "workflow.html", await workflow_pages.of(request.principal, workflow, version))


@get("/workflows/{workflow:str}/edit")
async def show_workflow_form(
    *,
    request: ConsoleRequest,
    workflow: FromPath[str],
    pages: NamedDependency[Pages],
    get_workflow: NamedDependency[GetWorkflow],
    canvas_choices: NamedDependency[CanvasChoices],
) -> Response[str]:
    request.principal.require(Permission.WORKFLOWS_MANAGE)
    found = await get_workflow.execute(principal=request.principal, workflow=workflow)
    text = await asyncio.to_thread(text_of_version, found)
    return pages.show(request, "workflow_form.html", await _form(request, canvas_choices, found, text))


@post("/workflows/{workflow:str}/edit", status_code=200)
async def change_workflow(
    *,
    request: ConsoleRequest,
    workflow: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    validate_workflow: NamedDependency[ValidateWorkflow],
    update_workflow: NamedDependency[UpdateWorkflow],
) -> Response[str]:
    """Save a new version, unless another user saved since the form was opened, or report all
    faults."""
    principal = request.principal
    principal.require(Permission.WORKFLOWS_MANAGE)
    with FormCheck() as check:
        definition = await definition_of(data.get("definition", ""))
        checked = await validate_workflow.execute(
            ValidateWorkflowCommand(principal=principal, definition=definition, workflow=workflow)
        )
        if checked.faults:
            view = validation_view(checked, definition)
            return _checked(pages, request, view["errors"], view["warnings"])
        saved = await update_workflow.execute(
            UpdateWorkflowCommand(
                principal=principal,
                workflow=workflow,
                changes=parts_of(definition),
                text=source_of(data.get("definition", "")),
                expected_version=entered_version(data.get("version", "")),
            )
        )
        return _to(f"/workflows/{saved.workflow.id}")
    return check.shown(pages, request)


@post("/workflows/{workflow:str}/delete", status_code=200)
async def delete_workflow(
    request: ConsoleRequest, workflow: FromPath[str], delete_workflow: NamedDependency[DeleteWorkflow]
) -> Response[str]:
    """Delete it; its runs stay."""
    await delete_workflow.execute(DeleteWorkflowCommand(principal=request.principal, workflow=workflow))
    return _to("/workflows")


@post("/workflows/{workflow:str}/runs", status_code=200)
async def start_workflow(
    *,
    request: ConsoleRequest,
    workflow: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_workflow: NamedDependency[GetWorkflow],
    start_workflow_run: NamedDependency[StartWorkflowRun],
) -> Response[str]:
    """Start a run of the newest version with the JSON if it was entered, else with the fields, and
    show it."""
    principal, value = request.principal, data.get("input", "")
    found = await get_workflow.execute(principal=principal, workflow=workflow)
    schema = None if value.strip() else _input_schema(compile_workflow(found.definition).plan)
    asked = fields_of(schema or {})
    with FormCheck({field.key: f"input-{field.name}" for field in asked}) as check:
        if asked and data.get("schema") != canonical_digest(schema):
            raise invalid("workflow_changed", "The workflow has other inputs now: load the page again.")
        entered = _filled(schema or {}, data) if asked else _entered(value, field="input")
        command = StartWorkflowRunCommand(principal=principal, workflow=workflow, input=entered)
        started = await start_workflow_run.execute(command)
        return _to(f"/workflows/runs/{started.run.id}")
    return check.shown(pages, request)


def _filled(schema: JsonObject, data: Mapping[str, str]) -> JsonObject:
    """What was entered in the fields. Raises INVALID at each required one that is empty: browsers
    do not check the form, as JSON may be entered instead."""
    entered = content_of(schema, data)
    empty = [field.key for field in fields_of(schema) if field.required and field.key not in entered]
    if empty:
        faults = (Violation(path=key, message="must be filled in") for key in empty)
        raise invalid("workflow_input_invalid", "The input is not complete.", *faults)
    return entered


def _entered(text: str, *, field: str) -> JsonValue:
    """The entered JSON value; empty means null. Raises INVALID at the field."""
    if not text.strip():
        return None
    try:
        return json_of(text)
    except JsonTextError as error:
        raise invalid("json_invalid", "This is not JSON.", Violation(path=field, message=str(error))) from None


async def _form(
    request: ConsoleRequest, canvas_choices: CanvasChoices, workflow: Workflow | None, text: str
) -> dict[str, object]:
    return {
        "workflow": workflow,
        "definition": text,
        "forms": forms_text(),
        "choices": json.dumps(await canvas_choices.of(request.principal)),
        "teams": await canvas_choices.teams(request.principal, None if workflow is None else workflow.team),
    }


def _checked(
    pages: Pages, request: ConsoleRequest, errors: list[FaultView], warnings: list[FaultView]
) -> Response[str]:
    """Nothing was saved: the faults are shown where a check shows them."""
    context: Mapping[str, object] = {"errors": errors, "warnings": warnings}
    headers = {HTMXHeaders.RE_TARGET.value: "#checked", HTMXHeaders.RE_SWAP.value: "innerHTML"}
    return pages.show(request, "parts/workflow_checked.html", context, status=422, headers=headers)


def _to(path: str) -> Response[str]:
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}{path}"})
