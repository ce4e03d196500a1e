"""The list of runs: filters, order and columns in its address, export, and actions on many runs."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, QueryParameter
from litestar.plugins.htmx import HTMXHeaders
from litestar.response import Stream

from application.agents.name_agents import NameAgents
from application.agents.queries import ListAgents
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.cancel_runs import CancelRuns, CancelRunsCommand
from application.runs.queries import CountRuns, ExportRuns, GetRun, ListRuns, RunCount
from application.runs.retry_run import RetryRun, RetryRunCommand
from application.system.pages import Page, PageRequest
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId
from domain.runs.run import Run, RunStatus
from interfaces.console.asked_runs import COLUMNS, SORTS, AskedRuns
from interfaces.console.error_words import ERROR_WORDS
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.pages import asked as asked_title
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.run_costs import RunCosts
from interfaces.console.run_starters import RunStarters
from interfaces.console.whole_lists import all_of
from interfaces.http.runs.export import ExportFormat, exported

PAGE = 50
CHANGED = "runs-changed"
"""Event of the browser after an action on many runs."""


def _asked(
    *,
    status: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    text: FromQuery[str] = "",
    tool: FromQuery[str] = "",
    model: FromQuery[str] = "",
    error: FromQuery[str] = "",
    metadata: FromQuery[str] = "",
    started_by: FromQuery[str] = "",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    order: FromQuery[str] = "",
    column: FromQuery[list[str] | None] = None,
) -> AskedRuns:
    return AskedRuns(
        status=status,
        agent=agent,
        text=text,
        tool=tool,
        model=model,
        error=error,
        metadata=metadata,
        started_by=started_by,
        since=since,
        until=until,
        order=order,
        column=tuple(column or ()),
    )


_ASKED = {"asked": Provide(_asked, sync_to_thread=False)}


@get("/runs", dependencies=_ASKED)
async def show_runs(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_runs: NamedDependency[ListRuns],
    count_runs: NamedDependency[CountRuns],
    list_agents: NamedDependency[ListAgents],
    name_agents: NamedDependency[NameAgents],
    run_costs: NamedDependency[RunCosts],
    run_starters: NamedDependency[RunStarters],
    asked: NamedDependency[AskedRuns],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Matching runs, and their number; none with a filter that is wrong."""
    principal = request.principal
    page = PageRequest(limit=PAGE, cursor=cursor)
    runs: Page[Run] = Page(items=())
    count = RunCount(number=0)
    if not asked.faults:
        runs = await list_runs.execute(principal, asked.wanted, page, asked.sorted_by)
        is_whole = cursor is None and runs.next_cursor is None
        count = RunCount(number=len(runs.items)) if is_whole else await count_runs.execute(principal, asked.wanted)
    agents = await all_of(lambda page: list_agents.execute(principal=principal, page=page))
    return pages.show(
        request,
        "runs.html",
        {
            "runs": runs.items,
            "count": count,
            "agent_names": await name_agents.execute(principal, (run.agent_id for run in runs.items)),
            "unpriced": run_costs.unknown(runs.items),
            "starters": await run_starters.of(principal, runs.items),
            "next_cursor": runs.next_cursor,
            "agents": agents,
            "models": sorted({agent.config.model for agent in agents}),
            "errors": ERROR_WORDS,
            "statuses": list(RunStatus),
            "asked": asked,
            "columns": asked.columns,
            "titles": COLUMNS,
            "sorts": SORTS,
            "may_run": principal.may(Permission.RUNS_START),
            "may_stop": principal.may(Permission.RUNS_CONTROL),
        },
    )


@get("/runs/export", dependencies=_ASKED)
async def export_runs(
    *,
    request: ConsoleRequest,
    export_runs: NamedDependency[ExportRuns],
    name_agents: NamedDependency[NameAgents],
    asked: NamedDependency[AskedRuns],
    as_: Annotated[ExportFormat, QueryParameter(name="as")] = ExportFormat.CSV,
) -> Stream:
    """Matching runs as a file. Raises INVALID for a filter that is wrong, which would export too
    much."""
    if asked.faults:
        raise invalid("run_filter_invalid", " ".join(asked.faults))
    principal = request.principal
    return exported(
        export_runs.execute(principal, asked.wanted, asked.sorted_by),
        as_,
        reads_as=principal.reads_as,
        names=lambda agents: name_agents.execute(principal, agents),
        headers=HEADERS,
    )


@post("/runs/bulk", status_code=200)
async def act_on_runs(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    cancel_run: NamedDependency[CancelRun],
    retry_run: NamedDependency[RetryRun],
    get_run: NamedDependency[GetRun],
) -> Response[str]:
    """Cancel or retry the chosen runs, one after the other; what is not possible is said."""
    data = await request.form()
    action, chosen = data.get("action"), [RunId(each) for each in data.getall("run", []) if isinstance(each, str)]
    if action not in ("cancel", "retry"):
        raise invalid("action_invalid", "Cancel or retry.", Violation(path="action", message="cancel or retry"))
    if not chosen:
        raise invalid("nothing_chosen", "Choose runs in the list first.")
    failures: list[str] = []
    for run_id in chosen[:PAGE]:
        try:
            await _act(request.principal, run_id, cancel=cancel_run if action == "cancel" else None, retry=retry_run)
        except ServiceError as error:
            failures.append(f"{await _title(request.principal, run_id, get_run)}: {error.detail}")
    done = {"action": "cancelled" if action == "cancel" else "retried", "done": len(chosen[:PAGE]) - len(failures)}
    headers = {HTMXHeaders.TRIGGER_EVENT.value: CHANGED}
    return pages.show(request, "parts/bulk.html", {**done, "failures": failures}, headers=headers)


@post("/runs/stop", status_code=200)
async def stop_runs(
    request: ConsoleRequest, data: Form, pages: NamedDependency[Pages], cancel_runs: NamedDependency[CancelRuns]
) -> Response[str]:
    """Cancel all unfinished runs with `all=yes`, or those of the MCP server `server`."""
    server = data.get("server") or None
    if (data.get("all") == "yes") is (server is not None):
        raise invalid(
            "stop_invalid", "Stop all runs or those of a server.", Violation(path="all", message="yes, or a server")
        )
    command = CancelRunsCommand(principal=request.principal, server=server)
    headers = {HTMXHeaders.TRIGGER_EVENT.value: CHANGED}
    context = {"cancelled": await cancel_runs.execute(command)}
    return pages.show(request, "parts/cancelled_runs.html", context, headers=headers)


async def _title(principal: Principal, run_id: RunId, get_run: GetRun) -> str:
    """What the run was asked, or its id where there is no such run."""
    try:
        return asked_title(await get_run.execute(principal, run_id))
    except ServiceError:
        return run_id


async def _act(principal: Principal, run_id: RunId, *, cancel: CancelRun | None, retry: RetryRun) -> None:
    if cancel is not None:
        await cancel.execute(CancelRunCommand(principal=principal, run_id=run_id))
    else:
        await retry.execute(RetryRunCommand(principal=principal, run_id=run_id))
