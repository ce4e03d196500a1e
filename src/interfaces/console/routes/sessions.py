"""Sessions: the caller's own, and for admins those of their organization."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.identity.queries import ListImpersonations, ListSessions
from application.revocation.end_session import EndSession, EndSessionCommand
from application.revocation.end_sessions import EndSessions, EndSessionsCommand
from application.system.pages import PageRequest
from domain.identity.api_key import Principal, person_of
from domain.identity.role import Role
from domain.ids import ApiKeyId
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.run_starters import RunStarters
from interfaces.console_paths import PATH

PAGE = 100
EVERYBODY = "all"


class SessionPages:
    """Data of the page."""

    def __init__(
        self, *, list_sessions: ListSessions, list_impersonations: ListImpersonations, run_starters: RunStarters
    ) -> None:
        self._sessions = list_sessions
        self._impersonations = list_impersonations
        self._run_starters = run_starters

    async def of(self, principal: Principal, holder: str, cursor: str) -> dict[str, object]:
        """Sessions of the caller, of `holder`, or everybody's. Raises FORBIDDEN."""
        wanted = None if holder == EVERYBODY else ApiKeyId(holder) if holder else principal.key_id
        page = await self._sessions.execute(principal, wanted, PageRequest(limit=PAGE, cursor=cursor or None))
        is_admin = principal.may(Role.ADMIN)
        user_id = None if wanted is None else person_of(wanted)
        acted = () if user_id is None else await self._impersonations.execute(principal, user_id)
        return {
            "acted": acted,
            "sessions": page.items,
            "next_cursor": page.next_cursor,
            "holder": holder,
            "of_caller": wanted == principal.key_id,
            "is_admin": is_admin,
            "names": await self._run_starters.names(
                principal,
                [*(id_ for each in page.items for id_ in (each.holder, each.actor)), *(each.actor for each in acted)],
            ),
        }


@get("/sessions")
async def show_sessions(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    session_pages: NamedDependency[SessionPages],
    holder: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(request, "sessions.html", await session_pages.of(request.principal, holder, cursor))


@post("/sessions/end", status_code=200)
async def end_sessions_page(
    request: ConsoleRequest, data: Form, end_sessions: NamedDependency[EndSessions]
) -> Response[str]:
    """End all of a user or an API key, except the session of this browser."""
    holder = ApiKeyId(data.get("holder") or request.principal.key_id)
    await end_sessions.execute(EndSessionsCommand(principal=request.principal, holder=holder))
    return _shown(data)


@post("/sessions/{session_id:str}/end", status_code=200)
async def end_session_page(
    request: ConsoleRequest, session_id: FromPath[str], data: Form, end_session: NamedDependency[EndSession]
) -> Response[str]:
    await end_session.execute(EndSessionCommand(principal=request.principal, session_id=session_id))
    return _shown(data)


def _shown(data: dict[str, str]) -> Response[str]:
    holder = data.get("holder", "")
    suffix = f"?holder={holder}" if holder.replace("_", "").isalnum() and holder.isascii() else ""
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/sessions{suffix}"})
