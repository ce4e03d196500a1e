"""Signing in with an identity provider: the way there, and the way back."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter, URLEncodedBody

from application.identity.begin_sign_in import BeginSignIn, BeginSignInCommand
from application.identity.finish_sign_in import FinishSignIn, FinishSignInCommand
from domain.errors import ErrorKind, ServiceError
from domain.ids import IdentityProviderId
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.sessions import ConsoleSessions, browser_of
from interfaces.console.sign_in_attempts import SignInAttempts
from interfaces.console.sign_in_pages import SignInPages
from interfaces.console_paths import PATH
from interfaces.http.problems import STATUS_OF_KIND

_REFUSED = frozenset({ErrorKind.UNAUTHENTICATED, ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND})
_MAX_FORM_BYTES = 16 * 1024
"""Small, because this form needs no key."""


@post("/sign-in/with/{provider_id:str}", status_code=200, request_max_body_size=_MAX_FORM_BYTES)
async def begin_sign_in_with(
    *,
    request: ConsoleRequest,
    provider_id: FromPath[str],
    data: URLEncodedBody[dict[str, str]],
    pages: NamedDependency[Pages],
    begin_sign_in: NamedDependency[BeginSignIn],
    sign_in_pages: NamedDependency[SignInPages],
) -> Response[str]:
    """Send the browser to the identity provider. A form of our own page, so that no other site can
    begin a sign-in. Not by a redirect, which browsers would check against `form-action`."""
    target = data.get("next", PATH)
    command = BeginSignInCommand(provider_id=IdentityProviderId(provider_id), redirect_uri=sign_in_pages.callback)
    try:
        begun = await begin_sign_in.execute(command)
    except ServiceError as error:
        if error.kind not in _REFUSED:
            raise
        context = await sign_in_pages.context(target, problem=error.detail)
        return pages.show(request, "sign_in.html", context, status=STATUS_OF_KIND[error.kind])
    cookies = sign_in_pages.begun(begun.pending, target, request.cookies)
    headers = {**HEADERS, **sign_in_pages.headers(target), "Refresh": f"0; url={begun.url}"}
    return Response("", headers=headers, cookies=cookies)


@get("/sign-in/callback")
async def finish_sign_in_with(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    sessions: NamedDependency[ConsoleSessions],
    finish_sign_in: NamedDependency[FinishSignIn],
    sign_in_pages: NamedDependency[SignInPages],
    sign_in_attempts: NamedDependency[SignInAttempts],
    code: Annotated[str | None, QueryParameter()] = None,
    given_state: Annotated[str, QueryParameter(name="state")] = "",
    error: Annotated[str | None, QueryParameter()] = None,
    iss: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Start a session of the user, and show the requested page. Failures of a sign-in that this
    browser began are bounded per address: other sites can send any browser here, and providers fail
    by themselves."""
    address = "" if request.client is None else request.client.host
    sign_in_attempts.require_room(address)
    own = sign_in_pages.of(request.cookies, given_state)
    command = FinishSignInCommand(
        pending=None if own is None else own.pending, state=given_state, code=code, error=error, issuer=iss
    )
    try:
        user = await finish_sign_in.execute(command)
    except ServiceError as refusal:
        if refusal.kind not in _REFUSED:
            raise
        if own is not None and error is None and refusal.kind is not ErrorKind.UNAVAILABLE:
            sign_in_attempts.failed(address)
        context = await sign_in_pages.context(PATH, problem=refusal.detail)
        status = 503 if refusal.kind is ErrorKind.UNAVAILABLE else 401
        response = pages.show(request, "sign_in.html", context, status=status)
        if own is not None:
            response.set_cookie(sign_in_pages.ended(given_state))
        return response
    location = PATH if own is None else own.target
    cookies = [await sessions.begun_by(user, browser_of(request)), sign_in_pages.ended(given_state)]
    headers = {**HEADERS, **sign_in_pages.headers(location), "Location": location}
    return Response("", status_code=303, headers=headers, cookies=cookies)
