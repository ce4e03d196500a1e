"""Signing in with an API key, and out."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, URLEncodedBody
from litestar.plugins.htmx import HTMXHeaders

from application.identity.sign_in_links import SignInLinks
from domain.errors import ErrorKind, ServiceError
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.sessions import ConsoleSessions, browser_of
from interfaces.console.sign_in_attempts import SignInAttempts
from interfaces.console.sign_in_pages import SignInPages, local_page
from interfaces.console_paths import PATH

Form = URLEncodedBody[dict[str, str]]
_MAX_FORM_BYTES = 16 * 1024
"""Small, because this form needs no key."""
_USED_UP = "This link was used or is too old. `dragoman open` makes another one; or sign in with a key."


@get("/sign-in")
async def sign_in_page(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    sign_in_pages: NamedDependency[SignInPages],
    target: Annotated[str, QueryParameter(name="next")] = PATH,
    organization: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Ask for a key, or an identity provider: those of the installation, and of the named
    organization."""
    context = await sign_in_pages.context(target, organization)
    return pages.show(request, "sign_in.html", context, headers=sign_in_pages.headers(target))


@get("/sign-in/{code:str}")
async def sign_in_link_page(
    request: ConsoleRequest,
    code: Annotated[str, PathParameter(description="The code of the link.")],
    pages: NamedDependency[Pages],
) -> Response[str]:
    """Ask for a click, which is the person's own: pages of others can open a link, and previews of
    messages do."""
    return pages.show(request, "sign_in_link.html", {"code": code})


@post("/sign-in/{code:str}", status_code=200, request_max_body_size=_MAX_FORM_BYTES)
async def sign_in_by_link(
    *,
    request: ConsoleRequest,
    code: Annotated[str, PathParameter(description="The code of the link.")],
    pages: NamedDependency[Pages],
    sessions: NamedDependency[ConsoleSessions],
    sign_in_links: NamedDependency[SignInLinks],
    sign_in_pages: NamedDependency[SignInPages],
    sign_in_attempts: NamedDependency[SignInAttempts],
) -> Response[str]:
    """Start a session with the key that the link stands for. Failures are bounded per address."""
    address = "" if request.client is None else request.client.host
    sign_in_attempts.require_room(address)
    token = sign_in_links.redeem(code)
    try:
        cookie = None if token is None else await sessions.begun(token, browser_of(request))
    except ServiceError as error:
        if error.kind is not ErrorKind.UNAUTHENTICATED:
            raise
        cookie = None
    if cookie is None:
        sign_in_attempts.failed(address)
        return pages.show(request, "sign_in.html", await sign_in_pages.context(PATH, problem=_USED_UP), status=401)
    return Response("", status_code=303, headers={**HEADERS, "Location": PATH}, cookies=[cookie])


@post("/sign-in", status_code=200, request_max_body_size=_MAX_FORM_BYTES)
async def sign_in(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    sessions: NamedDependency[ConsoleSessions],
    sign_in_pages: NamedDependency[SignInPages],
    sign_in_attempts: NamedDependency[SignInAttempts],
) -> Response[str]:
    """Start a session, and redirect to the requested page. Failures are bounded per address."""
    address = "" if request.client is None else request.client.host
    sign_in_attempts.require_room(address)
    target = local_page(data.get("next", PATH))
    try:
        cookie = await sessions.begun(data.get("key", "").strip(), browser_of(request))
    except ServiceError as error:
        if error.kind is not ErrorKind.UNAUTHENTICATED:
            raise
        sign_in_attempts.failed(address)
        context = await sign_in_pages.context(target, problem="Invalid API key.")
        return pages.show(request, "sign_in.html", context, status=401)
    return Response("", status_code=303, headers={"Location": target}, cookies=[cookie])


@post("/sign-out", status_code=200)
async def sign_out(
    request: ConsoleRequest,
    sessions: NamedDependency[ConsoleSessions],
    sign_in_pages: NamedDependency[SignInPages],
) -> Response[str]:
    """End the session, also for copies of its cookie, and that at the identity provider."""
    await sessions.end(request.auth)
    target = await sign_in_pages.after_sign_out(request.auth)
    return Response("", headers={HTMXHeaders.REDIRECT.value: target}, cookies=[sessions.ended(), sessions.not_acting()])
