"""Routes of sessions."""

from typing import Annotated

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter

from application.identity.queries import ListSessions
from application.revocation.end_session import EndSession, EndSessionCommand
from application.revocation.end_sessions import EndSessions, EndSessionsCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from domain.identity.api_key import Principal
from domain.ids import ApiKeyId
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import SessionPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.sessions.schemas import EndSessionsBody
from interfaces.http.sessions.views import EndedSessionsView, SessionPage, session_view

TAG = Tag(name="Sessions", description="Browsers signed in to the console, and clients that people admitted.")
EVERYBODY = "all"


@get("/sessions", summary="List sessions", responses=documented(403))
async def list_sessions(
    *,
    request: ApiRequest,
    list_sessions: NamedDependency[ListSessions],
    holder: Annotated[
        str | None,
        QueryParameter(
            description="Id of a user or an API key, or `all` for the organization's. By default the caller.",
            max_length=100,
        ),
    ] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> SessionPage:
    """Own sessions with any role, others require the role admin. Newest first, without ended ones:
    browsers signed in to the console, and OAuth clients at the gateway."""
    wanted = None if holder == EVERYBODY else _holder(request.principal, holder)
    page = await list_sessions.execute(request.principal, wanted, PageRequest(limit=limit, cursor=cursor))
    return page_view(page, session_view)


@delete("/sessions/{session_id:str}", summary="End a session", responses=documented(403, 404))
async def end_session(request: ApiRequest, session_id: SessionPath, end_session: NamedDependency[EndSession]) -> None:
    """Own sessions with any role, others require the role admin. The session is refused at once, in
    every process."""
    await end_session.execute(EndSessionCommand(principal=request.principal, session_id=session_id))


@post("/sessions/end-all", status_code=200, summary="End all sessions of a caller", responses=documented(403, 413))
async def end_sessions(
    request: ApiRequest, data: JSONBody[EndSessionsBody], end_sessions: NamedDependency[EndSessions]
) -> EndedSessionsView:
    """Own sessions with any role, others require the role admin. Tokens with which the caller calls
    the API stay valid."""
    command = EndSessionsCommand(principal=request.principal, holder=_holder(request.principal, data.holder))
    return {"ended": await end_sessions.execute(command)}


def _holder(principal: Principal, holder: str | None) -> ApiKeyId:
    """The caller, unless another one is named."""
    return principal.key_id if holder is None else ApiKeyId(holder)
