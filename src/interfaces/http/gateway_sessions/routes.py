"""Routes of gateway sessions."""

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.gateway.sessions.open_session import OpenGatewaySession, OpenGatewaySessionCommand
from application.gateway.sessions.queries import ListGatewaySessions
from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from domain.ids import GatewaySessionId, RunId, WorkflowRunId
from interfaces.http.gateway_sessions.schemas import OpenGatewaySessionBody
from interfaces.http.gateway_sessions.views import (
    GatewaySessionPage,
    OpenedGatewaySessionView,
    gateway_session_view,
    opened_gateway_session_view,
)
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import GatewaySessionPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Gateway sessions", description="Sessions of MCP clients that use an agent's tools.")


@post("/gateway-sessions", summary="Open a gateway session", responses=documented(403, 404, 409, 413))
async def open_gateway_session(
    request: ApiRequest,
    data: JSONBody[OpenGatewaySessionBody],
    open_gateway_session: NamedDependency[OpenGatewaySession],
) -> OpenedGatewaySessionView:
    """Requires the role operator. The token is shown only in this response. MCP clients send it
    to `url` as a bearer token."""
    command = OpenGatewaySessionCommand(
        principal=request.principal,
        agent=data.agent_id,
        run_id=None if data.run_id is None else RunId(data.run_id),
        workflow_run_id=None if data.workflow_run_id is None else WorkflowRunId(data.workflow_run_id),
        node_ids=None if data.node_ids is None else tuple(data.node_ids),
        ttl_s=data.ttl_s,
        names=data.names,
    )
    opened = await open_gateway_session.execute(command)
    return opened_gateway_session_view(opened.session, token=opened.token, url=opened.url)


@get("/gateway-sessions", summary="List gateway sessions", responses=documented(403))
async def list_gateway_sessions(
    *,
    request: ApiRequest,
    list_gateway_sessions: NamedDependency[ListGatewaySessions],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> GatewaySessionPage:
    """Requires the role runner, who sees the sessions that they opened; operators see all. Newest
    first, including ended sessions."""
    return page_view(
        await list_gateway_sessions.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        gateway_session_view,
    )


@delete(
    "/gateway-sessions/{gateway_session:str}",
    summary="Revoke a gateway session",
    responses=documented(403, 404),
)
async def revoke_gateway_session(
    request: ApiRequest,
    gateway_session: GatewaySessionPath,
    revoke_gateway_session: NamedDependency[RevokeGatewaySession],
) -> None:
    """Requires the role operator, or runner for a session that they opened. The token stops working
    at once."""
    await revoke_gateway_session.execute(
        RevokeGatewaySessionCommand(principal=request.principal, session_id=GatewaySessionId(gateway_session))
    )
