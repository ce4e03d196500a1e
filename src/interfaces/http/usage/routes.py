"""Route of the usage report."""

from datetime import date
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import QueryParameter

from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.usage.ports import BY_AGENT_AND_MODEL, UsageFilter
from application.usage.queries import GetUsage
from domain.ids import AgentId
from domain.usage.daily_usage import UsageKey
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.usage.views import UsagePage, usage_view

TAG = Tag(name="Usage", description="Tokens and cost.")


@get("/usage", summary="Tokens and cost by day, agent, model and person", responses=documented())
async def get_usage(
    *,
    request: ApiRequest,
    get_usage: NamedDependency[GetUsage],
    since: Annotated[date | None, QueryParameter(description="First day, UTC: `2026-07-01`.")] = None,
    until: Annotated[date | None, QueryParameter(description="Last day, UTC.")] = None,
    agent_id: Annotated[str | None, QueryParameter(description="Only this agent.")] = None,
    model: Annotated[str | None, QueryParameter(description="Only this model: `PROVIDER:NAME`.")] = None,
    started_by: Annotated[
        str | None, QueryParameter(description="Only runs with this `started_by`, such as `usr_…`.")
    ] = None,
    by: Annotated[
        list[UsageKey] | None,
        QueryParameter(
            description="Dimensions of the sums; `person` is who or what started the runs. Default: day, agent and model."
            " May be repeated."
        ),
    ] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> UsagePage:
    """Newest day first, then by agent, model and person. All conditions must hold."""
    wanted = UsageFilter(
        since=since,
        until=until,
        agent_id=None if agent_id is None else AgentId(agent_id),
        model=model,
        started_by=started_by,
        by=frozenset(by) if by else BY_AGENT_AND_MODEL,
    )
    return page_view(
        await get_usage.execute(
            principal=request.principal, wanted=wanted, page=PageRequest(limit=limit, cursor=cursor)
        ),
        usage_view,
    )
