"""`dragoman workflow`: graphs of agents, tools and steps."""

from pathlib import Path
from typing import Annotated

import typer

from domain.json_value import JsonObject
from domain.workflows.definition_json import NAME_KEYS
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import WorkflowArgument
from interfaces.cli.commands.workflow_runs import (
    answer_node,
    cancel_run,
    list_runs,
    replay_run,
    run_workflow,
    show_run,
)
from interfaces.cli.definition_file import commented_text, load_definition
from interfaces.cli.failures import FAILED, ApiProblem, UnexpectedAnswer
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal
from interfaces.http.workflows.views import PlannedNodeView, SavedWorkflowView, ValidationView, WorkflowView

workflow_app = typer.Typer(
    help="Manage and run workflows.", no_args_is_help=True, epilog="Example: dragoman workflow apply answers.yaml"
)

workflow_app.command("run", epilog="""Example: dragoman workflow run answers --input '{"topic": "bridges"}'""")(
    run_workflow
)
workflow_app.command("runs", epilog="Example: dragoman workflow runs --json")(list_runs)
workflow_app.command("run-show", epilog="Example: dragoman workflow run-show wfr_0123 --mermaid")(show_run)
workflow_app.command("answer", epilog="Example: dragoman workflow answer wfr_0123 review true")(answer_node)
workflow_app.command("replay", epilog="Example: dragoman workflow replay wfr_0123 review")(replay_run)
workflow_app.command("cancel", epilog="Example: dragoman workflow cancel wfr_0123")(cancel_run)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="YAML or JSON with name, nodes and edges of the workflow.")
]


@workflow_app.command("apply", epilog="Example: dragoman workflow apply answers.yaml")
def apply(context: typer.Context, file: FileArgument, as_json: JsonFlag = False) -> None:
    """Create or update the workflow of a file. An update is a new version, with what the file omits
    at its default. YAML is stored with its comments."""
    session = session_of(context)
    wanted = {**_load(file), **commented_text(file)}

    async def applied(api: ServiceApi) -> None:
        document, done = await _applied(api, wanted)
        workflow = read_as(SavedWorkflowView, document)
        session.terminal.note(f"{workflow['name']} ({workflow['id']}): {done}, version {workflow['version']}.")
        for warning in workflow["warnings"]:
            session.terminal.note(f"Warning: {warning['message']}")
        if as_json:
            session.terminal.json(document)

    session.perform(applied, creates=True)


@workflow_app.command("validate", epilog="Example: dragoman workflow validate answers.yaml")
def validate(context: typer.Context, file: FileArgument, as_json: JsonFlag = False) -> None:
    """Report all faults of the workflow in a file, without saving it. Exit code 1 if there are any.
    A team whose group is gone is one, though `apply` accepts it for a workflow that has this team
    already."""
    session = session_of(context)
    wanted = _load(file)

    async def told(api: ServiceApi) -> int:
        document = await api.post(path_to("workflows", "validate"), wanted)
        validation = read_as(ValidationView, document)
        if as_json:
            session.terminal.json(document)
        else:
            for fault in validation["errors"]:
                session.terminal.line(f"{fault['path']}: {fault['message']}")
            for warning in validation["warnings"]:
                session.terminal.note(f"Warning: {warning['message']}")
            if validation["valid"]:
                _show_plan(session.terminal, validation["plan"])
        count = len(validation["errors"])
        faults = "1 error." if count == 1 else f"{count} errors."
        session.terminal.note("The workflow is valid." if validation["valid"] else faults)
        return 0 if validation["valid"] else FAILED

    session.perform(told)


@workflow_app.command("list", epilog="Example: dragoman workflow list --json")
def list_workflows(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List workflows, newest first."""
    session_of(context).show_list(
        WorkflowView,
        path_to("workflows"),
        ("name", "id", "changed", "version", "nodes", "edges"),
        lambda workflow, _: (
            workflow["name"],
            workflow["id"],
            workflow["updated_at"],
            str(workflow["version"]),
            str(len(workflow["nodes"])),
            str(len(workflow["edges"])),
        ),
        empty="There are no workflows. Create one with `dragoman workflow apply FILE`.",
        as_json=as_json,
    )


@workflow_app.command(
    "show", epilog="Examples: dragoman workflow show answers; dragoman workflow show answers --mermaid > answers.mmd"
)
def show_workflow(
    context: typer.Context,
    workflow: WorkflowArgument,
    as_json: JsonFlag = False,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print it as a Mermaid flowchart.")] = False,
) -> None:
    """Show a workflow at its newest version. Its nodes are in order, with the tools of each
    agent."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        if as_mermaid:
            async for line in api.lines(path_to("workflows", workflow, "diagram")):
                session.terminal.line(line)
            return
        document = await api.get(path_to("workflows", workflow))
        if as_json:
            session.terminal.json(document)
            return
        found = read_as(WorkflowView, document)
        session.terminal.fields(
            {
                "name": found["name"],
                "id": found["id"],
                "version": f"{found['version']}, of {found['updated_at']}",
                "team": found["team"] or "",
            }
        )
        _show_plan(session.terminal, found["plan"])

    session.perform(show)


@workflow_app.command("delete", epilog="Example: dragoman workflow delete answers")
def delete_workflow(context: typer.Context, workflow: WorkflowArgument) -> None:
    """Delete a workflow."""
    session_of(context).delete(path_to("workflows", workflow), f"Deleted {workflow}.")


def _load(file: Path) -> JsonObject:
    return load_definition(file, what="workflow", needs="name and nodes", texts=NAME_KEYS)


async def _applied(api: ServiceApi, wanted: JsonObject) -> tuple[JsonObject, str]:
    try:
        present = await api.get(path_to("workflows", str(wanted["name"])))
    except ApiProblem as problem:
        if problem.status != 404:
            raise
        return await api.post(path_to("workflows"), wanted), "created"
    identifier, version = present.get("id"), present.get("version")
    if not isinstance(identifier, str) or not isinstance(version, int):
        raise UnexpectedAnswer("a workflow without id and version")
    whole: JsonObject = {"edges": [], "team": None, **wanted}
    changed = await api.patch(path_to("workflows", identifier), whole, headers={"If-Match": f'"{version}"'})
    return changed, "unchanged" if changed.get("version") == version else "updated"


def _show_plan(terminal: Terminal, plan: list[PlannedNodeView] | None) -> None:
    terminal.table(
        ("node", "kind", "mode", "after", "tools"),
        [
            (
                node["id"],
                node["kind"],
                node["mode"],
                ", ".join(node["after"]),
                (", ".join(node["connected_tool_node_ids"]) or "none") if node["kind"] == "agent" else "",
            )
            for node in plan or []
        ],
        empty="This version of Dragoman no longer accepts the workflow.",
    )
