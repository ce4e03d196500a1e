"""Failures in a browser: a page, or a message on the current page."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit

from litestar import Litestar, Response
from litestar.exceptions import HTTPException, NotFoundException, ValidationException
from litestar.plugins.htmx import HTMXHeaders
from litestar.response.base import ASGIResponse
from litestar.status_codes import HTTP_413_REQUEST_ENTITY_TOO_LARGE
from litestar.types import ExceptionHandlersMap, Receive, Scope, Send

from domain.errors import ErrorKind, ServiceError
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.sessions import ConsoleSessions
from interfaces.console_paths import SIGN_IN_PATH
from interfaces.http.bodies import MAX_JSON_BYTES
from interfaces.http.problems import STATUS_OF_KIND, AnyRequest, unexpected_reference

FLASH = "#flash"


def failure_handlers(pages: Pages, sessions: ConsoleSessions) -> ExceptionHandlersMap:
    """Handlers for every exception of the console's routes."""

    def shown(request: AnyRequest, status: int, title: str, detail: str, faults: tuple[str, ...] = ()) -> Response[str]:
        asked = ConsoleRequest(request.scope)
        told = {"title": title, "detail": detail, "faults": faults}
        if not asked.htmx:
            return pages.show(asked, "failure.html", told, status=status)
        # On the current page, so that entered text stays.
        headers = {HTMXHeaders.RE_TARGET.value: FLASH, HTMXHeaders.RE_SWAP.value: "innerHTML"}
        return pages.show(asked, "parts/flash.html", told, status=status, headers=headers)

    def of_service(request: AnyRequest, error: ServiceError) -> Response[str]:
        if error.kind is ErrorKind.UNAUTHENTICATED:
            return _to_sign_in(ConsoleRequest(request.scope))
        faults = tuple(f"{fault.path}: {fault.message}" for fault in error.violations)
        return shown(request, STATUS_OF_KIND[error.kind], _TITLES.get(error.kind, "Not possible"), error.detail, faults)

    def of_http(request: AnyRequest, error: HTTPException) -> Response[str]:
        if isinstance(error, NotFoundException):
            return _NoSuchPage(sessions, lambda: shown(request, 404, "Not found", "There is no such page."))
        if isinstance(error, ValidationException):
            return shown(request, 422, "Not valid", "A field or the address is not valid.")
        if error.status_code == HTTP_413_REQUEST_ENTITY_TOO_LARGE:
            detail = f"The request is larger than {MAX_JSON_BYTES // 2**20} MiB, the limit of a request."
            return shown(request, error.status_code, "Too large", detail)
        return shown(request, error.status_code, "Not possible", "The request could not be processed.")

    def unexpected(request: AnyRequest, error: Exception) -> Response[str]:
        reference = unexpected_reference(request, error)
        return shown(
            request, 500, "Something went wrong", f"Internal error; the log has the details under {reference}."
        )

    return {ServiceError: of_service, HTTPException: of_http, Exception: unexpected}


class _NoSuchPage(Response[str]):
    """For an address without a route, which no middleware sees: the person is looked up before the
    page is made."""

    def __init__(self, sessions: ConsoleSessions, page: Callable[[], Response[str]]) -> None:
        super().__init__("", status_code=404)
        self._sessions = sessions
        self._page = page

    def to_asgi_response(self, app: Litestar | None, request: AnyRequest, **options: Any) -> ASGIResponse:
        return _Framed(self._sessions, lambda: self._page().to_asgi_response(app, request, **options))


class _Framed(ASGIResponse):
    def __init__(self, sessions: ConsoleSessions, answer: Callable[[], ASGIResponse]) -> None:
        super().__init__(status_code=404)
        self._sessions = sessions
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if ConsoleRequest(scope).person is None:
            headers = dict(scope["headers"])
            with suppress(ServiceError):
                self._sessions.require_own_host(headers.get(b"host", b"").decode("latin-1"))
                scope["auth"] = await self._sessions.of_headers(headers)
        await self._answer()(scope, receive, send)


_TITLES = {
    ErrorKind.NOT_FOUND: "Not found",
    ErrorKind.FORBIDDEN: "Not allowed",
    ErrorKind.CONFLICT: "Not possible now",
    ErrorKind.INVALID: "Not valid",
    ErrorKind.LIMIT: "Too much at once",
    ErrorKind.UNAVAILABLE: "Not available",
}


def _to_sign_in(request: ConsoleRequest) -> Response[str]:
    """Redirect to the sign-in page, and from there back."""
    if request.htmx:
        target = _sign_in_for(request.htmx.current_url)
        return Response("", status_code=200, headers={HTMXHeaders.REDIRECT.value: target})
    target = _sign_in_for(str(request.url) if request.method == "GET" else None)
    return Response("", status_code=303, headers={"Location": target, "Cache-Control": "no-store"})


def _sign_in_for(page: str | None) -> str:
    if page is None:
        return SIGN_IN_PATH
    url = urlsplit(page)
    here = url.path if not url.query else f"{url.path}?{url.query}"
    return f"{SIGN_IN_PATH}?next={quote(here, safe='')}"
