"""Versions of workflows: what one changed, and going back to an older one."""

import asyncio
from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.system.pages import PageRequest
from application.workflows.queries import ListWorkflowVersions
from application.workflows.update_workflow import UpdateWorkflow, UpdateWorkflowCommand
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.workflows.graph import Workflow
from interfaces.console.faults import FormCheck
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.version_changes import Change, difference
from interfaces.console.workflow_text import text_of, text_of_version
from interfaces.console_paths import PATH

PAGE = 100
"""Versions that the console knows of: the latest."""
ShownVersion = Annotated[int, QueryParameter()]


async def _versions(
    list_workflow_versions: ListWorkflowVersions, principal: Principal, workflow: str
) -> dict[int, Workflow]:
    page = PageRequest(limit=PAGE)
    found = await list_workflow_versions.execute(principal=principal, workflow=workflow, page=page)
    return {each.version: each for each in found.items}


@get("/workflows/{workflow:str}/changes")
async def show_workflow_changes(
    *,
    request: ConsoleRequest,
    workflow: FromPath[str],
    pages: NamedDependency[Pages],
    list_workflow_versions: NamedDependency[ListWorkflowVersions],
    version: ShownVersion,
    since: Annotated[int | None, QueryParameter()] = None,
) -> Response[str]:
    """The definition line by line, against the version before or `since`."""
    versions = await _versions(list_workflow_versions, request.principal, workflow)
    shown, before = versions.get(version), versions.get(version - 1 if since is None else since)
    if shown is None:
        raise NotFoundException
    context: dict[str, object] = {"changes": None}
    if before is not None:
        lines = await asyncio.to_thread(_compared, before, shown)
        context["changes"] = [Change(field="definition", lines=lines)] if lines else []
    return pages.show(request, "parts/workflow_changes.html", context)


def _compared(before: Workflow, after: Workflow) -> tuple[str, ...]:
    """By their texts if both were saved with one: another layout of the same definition is no change."""
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
    list_workflow_versions: NamedDependency[ListWorkflowVersions],
    update_workflow: NamedDependency[UpdateWorkflow],
    version: ShownVersion,
    newest: ShownVersion,
) -> Response[str]:
    """Save the definition of an older version as the next one, unless another user saved since the page was opened."""
    principal = request.principal
    principal.require(Role.ADMIN)
    found = (await _versions(list_workflow_versions, principal, workflow)).get(version)
    if found is None:
        raise NotFoundException
    with FormCheck() as check:
        command = UpdateWorkflowCommand(
            principal=principal,
            workflow=workflow,
            name=found.definition.name,
            nodes=found.definition.nodes,
            edges=found.definition.edges,
            text=found.text,
            expected_version=newest,
        )
        await update_workflow.execute(command)
        return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/workflows/{found.id}"})
    return check.shown(pages, request)
