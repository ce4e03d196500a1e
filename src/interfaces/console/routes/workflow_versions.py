"""Versions of workflows: what one changed, and going back to an older one."""

import asyncio
from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.workflows.queries import GetWorkflow
from application.workflows.update_workflow import UpdateWorkflow, UpdateWorkflowCommand
from domain.identity.permission import Permission
from domain.workflows.graph import Workflow
from interfaces.console.faults import FormCheck
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.version_changes import Change, difference
from interfaces.console.workflow_text import text_of, text_of_version
from interfaces.console_paths import PATH
from interfaces.http.workflows.definition_text import parts_of

ShownVersion = Annotated[int, QueryParameter()]


@get("/workflows/{workflow:str}/changes")
async def show_workflow_changes(
    *,
    request: ConsoleRequest,
    workflow: FromPath[str],
    pages: NamedDependency[Pages],
    get_workflow: NamedDependency[GetWorkflow],
    version: ShownVersion,
    since: Annotated[int | None, QueryParameter()] = None,
) -> Response[str]:
    """The definition line by line, against the version before or `since`."""
    principal, earlier = request.principal, version - 1 if since is None else since
    shown = await get_workflow.execute(principal=principal, workflow=workflow, version=version)
    context: dict[str, object] = {"changes": None}
    if earlier > 0:
        before = await get_workflow.execute(principal=principal, workflow=workflow, version=earlier)
        lines = await asyncio.to_thread(_compared, before, shown)
        context["changes"] = [Change(field="definition", lines=lines)] if lines else []
    return pages.show(request, "parts/workflow_changes.html", context)


def _compared(before: Workflow, after: Workflow) -> tuple[str, ...]:
    """By their texts if both were saved with one: another layout of the same definition is no
    change."""
    is_written = before.text is not None and after.text is not None
    old, new = (
        tuple((text_of_version(each) if is_written else text_of(each.definition)).splitlines())
        for each in (before, after)
    )
    return difference(old, new)


@post("/workflows/{workflow:str}/restore", status_code=200)
async def restore_workflow(
    *,
    request: ConsoleRequest,
    workflow: FromPath[str],
    pages: NamedDependency[Pages],
    get_workflow: NamedDependency[GetWorkflow],
    update_workflow: NamedDependency[UpdateWorkflow],
    version: ShownVersion,
    newest: ShownVersion,
) -> Response[str]:
    """Save the definition of an older version as the next one, unless another user saved since the
    page was opened. The team stays: what was given to one since is not given back by the way."""
    principal = request.principal
    principal.require(Permission.WORKFLOWS_MANAGE)
    found = await get_workflow.execute(principal=principal, workflow=workflow, version=version)
    team = (await get_workflow.execute(principal=principal, workflow=workflow)).team
    with FormCheck() as check:
        command = UpdateWorkflowCommand(
            principal=principal,
            workflow=workflow,
            changes={**parts_of(found.definition), "team": team},
            text=found.text if found.team == team else None,
            expected_version=newest,
        )
        await update_workflow.execute(command)
        return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/workflows/{found.id}"})
    return check.shown(pages, request)
