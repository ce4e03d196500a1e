"""Routes of tools."""

from datetime import datetime
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import QueryParameter

from application.tools.explain_tool import ExplainTool, ExplainToolCommand
from application.tools.list_tools import ListTools
from domain.ids import ApiKeyId
from interfaces.http.page_views import cut
from interfaces.http.paging import PageCursor, WholeLimit
from interfaces.http.paths import ToolNamePath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.tools.result_views import explanation_view, tool_view
from interfaces.http.tools.views import ExplanationView, ToolsView

TAG = Tag(name="Tools", description="Tools of agents, and why policy allows them or not.")


@get("/tools", summary="List tools", responses=documented(404))
async def list_tools(
    *,
    request: ApiRequest,
    list_tools: NamedDependency[ListTools],
    agent: Annotated[str | None, QueryParameter(description="Only the tools of this agent, by id or name.")] = None,
    limit: WholeLimit = None,
    cursor: PageCursor = None,
) -> ToolsView:
    """Native tools, then those of MCP servers by name, as last listed."""
    listings = await list_tools.execute(request.principal, agent)
    page = cut(listings, limit, cursor)
    return {"data": [tool_view(listing) for listing in page["data"]], "next_cursor": page["next_cursor"]}


@get("/tools/{name:str}/explain", summary="Explain the effective policy of a tool", responses=documented(403, 404))
async def explain_tool(
    *,
    request: ApiRequest,
    name: ToolNamePath,
    explain_tool: NamedDependency[ExplainTool],
    agent: Annotated[str, QueryParameter(description="The agent that calls it, by id or name.")],
    person: Annotated[
        str | None,
        QueryParameter(
            min_length=1,
            description="Who acts: id of a user, an API key, or `schedule:` with the id of a schedule, which is no person. Another"
            " person than the caller needs the permission groups.manage. Default: the caller.",
        ),
    ] = None,
    at: Annotated[datetime | None, QueryParameter(description="When, RFC 3339. Default: now.")] = None,
) -> ExplanationView:
    """Why calls are allowed, require approval, are denied or hidden: the rules of each layer,
    and the result."""
    command = ExplainToolCommand(
        principal=request.principal, name=name, agent=agent, person=None if person is None else ApiKeyId(person), at=at
    )
    return explanation_view(await explain_tool.execute(command))
