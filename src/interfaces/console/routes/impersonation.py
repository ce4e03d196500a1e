"""Acting as another user, for support: beginning and ending it in this browser."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.identity.begin_impersonation import BeginImpersonation, BeginImpersonationCommand
from application.identity.queries import GetUser
from domain.identity.impersonation import DEFAULT_MINUTES, MAX_MINUTES, MAX_REASON
from domain.ids import UserId
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.sessions import ConsoleSessions
from interfaces.console_paths import PATH
from interfaces.http.bodies import decoded_body
from interfaces.http.users.schemas import BeginImpersonationBody


@get("/people/{user_id:str}/impersonation")
async def show_impersonation(
    request: ConsoleRequest, user_id: FromPath[str], pages: NamedDependency[Pages], get_user: NamedDependency[GetUser]
) -> Response[str]:
    """The form. Admins open it, because it shows the user."""
    context = {
        "user": await get_user.execute(request.principal, UserId(user_id)),
        "minutes": DEFAULT_MINUTES,
        "most": MAX_MINUTES,
        "longest": MAX_REASON,
    }
    return pages.show(request, "impersonation.html", context)


@post("/people/{user_id:str}/impersonation", status_code=200)
async def begin_impersonation_page(
    *,
    request: ConsoleRequest,
    user_id: FromPath[str],
    data: Form,
    sessions: NamedDependency[ConsoleSessions],
    begin_impersonation: NamedDependency[BeginImpersonation],
) -> Response[str]:
    """Begin, and show the overview as the user."""
    minutes = data.get("minutes", "").strip()
    entered = {"reason": data.get("reason", ""), "minutes": int(minutes) if minutes.isdecimal() else 0}
    body = decoded_body(BeginImpersonationBody, {**entered})
    command = BeginImpersonationCommand(
        principal=request.principal, user_id=UserId(user_id), reason=body.reason, minutes=body.minutes
    )
    begun = await begin_impersonation.execute(command)
    headers = {HTMXHeaders.REDIRECT.value: PATH}
    return Response("", headers=headers, cookies=[sessions.acting(begun.token)])


@post("/impersonation/end", status_code=200)
async def end_impersonation_page(request: ConsoleRequest, sessions: NamedDependency[ConsoleSessions]) -> Response[str]:
    await sessions.end_impersonation(request.auth)
    return Response("", headers={HTMXHeaders.REDIRECT.value: PATH}, cookies=[sessions.not_acting()])
