"""The list of runs: filters in its address, and actions on many runs."""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.agents.name_agents import NameAgents
from application.agents.queries import ListAgents
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.cancel_runs import CancelRuns, CancelRunsCommand
from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.runs.retry_run import RetryRun, RetryRunCommand
from application.system.pages import Page, PageRequest
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import AgentId, RunId
from domain.runs.run import RunStatus
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.run_costs import RunCosts
from interfaces.console.run_starters import RunStarters
from interfaces.console.whole_lists import all_of

PAGE = 50
CHANGED = "runs-changed"
"""Event of the browser after an action on many runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRuns:
    """The filter above the table; all conditions must hold. `since` and `until` are days, inclusive."""

    status: str
    agent: str
    text: str
    tool: str
    model: str
    error: str
    metadata: str
    since: str
    until: str

    @property
    def wanted(self) -> RunFilter:
        """The filter, where empty fields do not restrict."""
        name, _, value = self.metadata.partition("=")
        return RunFilter(
            status=RunStatus(self.status) if self.status in set(RunStatus) else None,
            agent_id=AgentId(self.agent) if self.agent else None,
            text=self.text.strip() or None,
            tool=self.tool.strip() or None,
            model=self.model.strip() or None,
            error=self.error.strip() or None,
            metadata=(name.strip(), value.strip()) if name.strip() else None,
            since=begin_of(self.since),
            until=begin_of(self.until, days=1),
        )

    @property
    def faults(self) -> list[str]:
        """What is wrong with fields that would not restrict as meant."""
        return [
            fault
            for is_wrong, fault in (
                (self.status and self.status not in set(RunStatus), f"“{self.status}” is not a state of runs."),
                (self.since and begin_of(self.since) is None, f"“{self.since}” is not a day as YYYY-MM-DD."),
                (self.until and begin_of(self.until, days=1) is None, f"“{self.until}” is not a day as YYYY-MM-DD."),
                (
                    self.metadata and not self.metadata.partition("=")[0].strip(),
                    "Metadata needs a name, as NAME=VALUE.",
                ),
                (self.metadata and "=" not in self.metadata, "Metadata is searched as NAME=VALUE."),
            )
            if is_wrong
        ]

    @property
    def query(self) -> str:
        """The filter as a query string."""
        return urlencode({name: value for name, value in asdict(self).items() if value})

    @property
    def searches(self) -> bool:
        """Whether texts are searched, which is not repeated by itself."""
        return bool(self.text or self.tool or self.metadata)

    @property
    def is_detailed(self) -> bool:
        """Whether one of the fields restricts that are folded otherwise."""
        return bool(self.tool or self.model or self.error or self.metadata or self.since or self.until)


def begin_of(day: str, *, days: int = 0) -> datetime | None:
    """The begin of a day in UTC, or of one so many days later; None for what is no day."""
    try:
        return datetime.combine(date.fromisoformat(day), time(), UTC) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None


def _asked(
    *,
    status: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    text: FromQuery[str] = "",
    tool: FromQuery[str] = "",
    model: FromQuery[str] = "",
    error: FromQuery[str] = "",
    metadata: FromQuery[str] = "",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
) -> AskedRuns:
    return AskedRuns(
        status=status,
        agent=agent,
        text=text,
        tool=tool,
        model=model,
        error=error,
        metadata=metadata,
        since=since,
        until=until,
    )


@get("/runs", dependencies={"asked": Provide(_asked, sync_to_thread=False)})
async def show_runs(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_runs: NamedDependency[ListRuns],
    list_agents: NamedDependency[ListAgents],
    name_agents: NamedDependency[NameAgents],
    run_costs: NamedDependency[RunCosts],
    run_starters: NamedDependency[RunStarters],
    asked: NamedDependency[AskedRuns],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Matching runs, newest first; none with a filter that is wrong."""
    principal = request.principal
    page = PageRequest(limit=PAGE, cursor=cursor)
    runs = Page(items=()) if asked.faults else await list_runs.execute(principal, asked.wanted, page)
    return pages.show(
        request,
        "runs.html",
        {
            "runs": runs.items,
            "agent_names": await name_agents.execute(principal, (run.agent_id for run in runs.items)),
            "unpriced": run_costs.unknown(runs.items),
            "starters": await run_starters.of(principal, runs.items),
            "next_cursor": runs.next_cursor,
            "agents": await all_of(lambda page: list_agents.execute(principal=principal, page=page)),
            "statuses": list(RunStatus),
            "asked": asked,
            "may_run": principal.may(Permission.RUNS_START),
            "may_stop": principal.may(Permission.RUNS_CONTROL),
        },
    )


@post("/runs/bulk", status_code=200)
async def act_on_runs(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    cancel_run: NamedDependency[CancelRun],
    retry_run: NamedDependency[RetryRun],
) -> Response[str]:
    """Cancel or retry the chosen runs, one after the other; what is not possible is said."""
    data = await request.form()
    action, chosen = data.get("action"), [RunId(each) for each in data.getall("run", []) if isinstance(each, str)]
    if action not in ("cancel", "retry"):
        raise invalid("action_invalid", "Cancel or retry.", Violation(path="action", message="cancel or retry"))
    failures: list[str] = []
    for run_id in chosen[:PAGE]:
        try:
            await _act(request.principal, run_id, cancel=cancel_run if action == "cancel" else None, retry=retry_run)
        except ServiceError as error:
            failures.append(error.detail)
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


async def _act(principal: Principal, run_id: RunId, *, cancel: CancelRun | None, retry: RetryRun) -> None:
    if cancel is not None:
        await cancel.execute(CancelRunCommand(principal=principal, run_id=run_id))
    else:
        await retry.execute(RetryRunCommand(principal=principal, run_id=run_id))
