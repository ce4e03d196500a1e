"""Route of tools."""

from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter

from application.tools.list_tools import ListTools, ListToolsCommand
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.tools.views import ToolsView, tool_view

TAGS = ["tools"]


@get("/tools", tags=TAGS, summary="List tools", responses=documented(404))
async def list_tools(
    request: ApiRequest,
    list_tools: NamedDependency[ListTools],
    agent: Annotated[str | None, QueryParameter(description="Only the tools of this agent, by id or name.")] = None,
) -> ToolsView:
    """Native tools, then those of MCP servers by name, as last seen."""
    listings = await list_tools.execute(ListToolsCommand(principal=request.principal, agent=agent))
    return {"data": [tool_view(listing) for listing in listings], "next_cursor": None}


def tools_routes() -> list[HTTPRouteHandler]:
    """The route of tools."""
    return [list_tools]
