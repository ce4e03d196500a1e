"""Failures in a browser: a page, or a message on the current page."""

from urllib.parse import quote, urlsplit

from litestar import Response
from litestar.exceptions import HTTPException, NotFoundException, ValidationException
from litestar.plugins.htmx import HTMXHeaders
from litestar.status_codes import HTTP_413_REQUEST_ENTITY_TOO_LARGE
from litestar.types import ExceptionHandlersMap

from domain.errors import ErrorKind, ServiceError
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console_paths import SIGN_IN_PATH
from interfaces.http.bodies import MAX_JSON_BYTES
from interfaces.http.problems import STATUS_OF_KIND, AnyRequest, unexpected_reference

FLASH = "#flash"


def failure_handlers(pages: Pages) -> ExceptionHandlersMap:
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
            return shown(request, 404, "Not found", "There is no such page.")
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
