"""Routes of agents."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.agents.create_agent import CreateAgent, CreateAgentCommand
from application.agents.delete_agent import DeleteAgent, DeleteAgentCommand
from application.agents.queries import GetAgent, ListAgents, ListAgentVersions
from application.agents.update_agent import UpdateAgent, UpdateAgentCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.tools.review_tool_policies import ReviewToolPolicies, ReviewToolPoliciesCommand
from interfaces.http.agents.schemas import CreateAgentBody, UpdateAgentBody
from interfaces.http.agents.views import AgentPage, AgentView, SavedAgentView, agent_view
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import AgentPath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Agents", description="Agents and their versions.")


@post("/agents", summary="Create an agent", responses=documented(403, 409, 413))
async def create_agent(
    request: ApiRequest,
    data: JSONBody[CreateAgentBody],
    create_agent: NamedDependency[CreateAgent],
    review_tool_policies: NamedDependency[ReviewToolPolicies],
) -> Response[SavedAgentView]:
    """Requires the role admin. Models, native tools and MCP servers named must exist."""
    agent = await create_agent.execute(
        CreateAgentCommand(principal=request.principal, settings=data.to_settings(), canary_tokens=data.to_canaries())
    )
    headers = {"Location": f"/v1/agents/{agent.id}", **etag(agent.version)}
    warnings = await review_tool_policies.execute(ReviewToolPoliciesCommand(principal=request.principal, saved=agent))
    return Response({**agent_view(agent), "warnings": list(warnings)}, headers=headers)


@get("/agents", summary="List agents", responses=documented())
async def list_agents(
    *,
    request: ApiRequest,
    list_agents: NamedDependency[ListAgents],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> AgentPage:
    """Newest first, each at its newest version."""
    return page_view(
        await list_agents.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        agent_view,
    )


@get("/agents/{agent:str}", summary="Read an agent", responses=documented(404))
async def get_agent(request: ApiRequest, agent: AgentPath, get_agent: NamedDependency[GetAgent]) -> Response[AgentView]:
    """By id or name, at its newest version."""
    found = await get_agent.execute(principal=request.principal, agent=agent)
    return Response(agent_view(found), headers=etag(found.version))


@patch("/agents/{agent:str}", summary="Change an agent", responses=documented(403, 404, 409, 412, 413))
async def update_agent(
    *,
    request: ApiRequest,
    agent: AgentPath,
    data: JSONBody[UpdateAgentBody],
    update_agent: NamedDependency[UpdateAgent],
    review_tool_policies: NamedDependency[ReviewToolPolicies],
    if_match: IfMatch = None,
) -> Response[SavedAgentView]:
    """Requires the role admin. Creates a new version, which the next run uses."""
    changed = await update_agent.execute(
        UpdateAgentCommand(
            principal=request.principal,
            agent=agent,
            changes=data.to_changes(),
            limits=data.to_limit_changes(),
            canary_tokens=data.to_canaries(),
            expected_version=expected_version(if_match),
        )
    )
    warnings = await review_tool_policies.execute(ReviewToolPoliciesCommand(principal=request.principal, saved=changed))
    return Response({**agent_view(changed), "warnings": list(warnings)}, headers=etag(changed.version))


@delete("/agents/{agent:str}", summary="Delete an agent", responses=documented(403, 404, 409))
async def delete_agent(request: ApiRequest, agent: AgentPath, delete_agent: NamedDependency[DeleteAgent]) -> None:
    """Requires the role admin. Rejected while a run of the agent is unfinished. Finished runs
    stay readable."""
    await delete_agent.execute(DeleteAgentCommand(principal=request.principal, agent=agent))


@get("/agents/{agent:str}/versions", summary="List the versions of an agent", responses=documented(404))
async def list_agent_versions(
    *,
    request: ApiRequest,
    agent: AgentPath,
    list_agent_versions: NamedDependency[ListAgentVersions],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> AgentPage:
    """Newest first."""
    return page_view(
        await list_agent_versions.execute(
            principal=request.principal, agent=agent, page=PageRequest(limit=limit, cursor=cursor)
        ),
        agent_view,
    )
