"""Route of the usage report."""

from datetime import date
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import QueryParameter

from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.usage.ports import BY_AGENT_AND_MODEL, ToolUsageFilter, UsageFilter
from application.usage.queries import GetToolUsage, GetUsage
from domain.errors import Violation, invalid
from domain.ids import AgentId
from domain.usage.daily_usage import UsageKey
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.usage.views import UsagePage, tool_usage_view, usage_view

_BY_TOOL = frozenset({UsageKey.TOOL})

TAG = Tag(name="Usage", description="Tokens and cost.")


@get("/usage", summary="Tokens and cost by day, agent, model and person, and calls by tool", responses=documented())
async def get_usage(
    *,
    request: ApiRequest,
    get_usage: NamedDependency[GetUsage],
    get_tool_usage: NamedDependency[GetToolUsage],
    since: Annotated[date | None, QueryParameter(description="First day, UTC: `2026-07-01`.")] = None,
    until: Annotated[date | None, QueryParameter(description="Last day, UTC.")] = None,
    agent_id: Annotated[str | None, QueryParameter(description="Only this agent.")] = None,
    model: Annotated[str | None, QueryParameter(description="Only this model: `PROVIDER:NAME`.")] = None,
    started_by: Annotated[
        str | None, QueryParameter(description="Only runs with this `started_by`, such as `usr_…`.")
    ] = None,
    tool: Annotated[
        str | None, QueryParameter(description="Only this tool, by the name that models see; sums are by tool then.")
    ] = None,
    by: Annotated[
        list[UsageKey] | None,
        QueryParameter(
            description="Dimensions of the sums; `person` is who or what started the runs. Default: day, agent and model."
            " May be repeated. `tool` sums the calls of tools instead, beside it only `day`."
        ),
    ] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> UsagePage:
    """Newest day first, then by agent, model and person, or by tool. All conditions must hold.
    Calls of tools are counted since the service has the schema's revision 0113, about a second
    after each call."""
    wanted_page = PageRequest(limit=limit, cursor=cursor)
    if tool is not None or UsageKey.TOOL in (by or ()):
        _check_conditions_of_tools(agent_id=agent_id, model=model, started_by=started_by)
        of_tools = ToolUsageFilter(since=since, until=until, tool=tool, by=frozenset(by or ()) or _BY_TOOL)
        found = await get_tool_usage.execute(request.principal, of_tools, wanted_page)
        return page_view(found.page, tool_usage_view)
    wanted = UsageFilter(
        since=since,
        until=until,
        agent_id=None if agent_id is None else AgentId(agent_id),
        model=model,
        started_by=started_by,
        by=frozenset(by) if by else BY_AGENT_AND_MODEL,
    )
    return page_view(await get_usage.execute(request.principal, wanted, wanted_page), usage_view)


def _check_conditions_of_tools(**given: str | None) -> None:
    wrong = [Violation(path=name, message="must not be given with tool") for name, value in given.items() if value]
    if wrong:
        raise invalid("usage_keys_invalid", "Calls of tools are not summed by agent, model and person.", *wrong)
