"""Puts the routes of the authorization server together. Its failures are those of OAuth (RFC 6749,
section 5.2)."""

from litestar import Response
from litestar.exceptions import HTTPException

from domain.errors import ErrorKind, ServiceError
from infrastructure.container import Container
from interfaces.http.gateway_authorization import routes
from interfaces.http.gateway_authorization.registration_limit import RegistrationLimit
from interfaces.http.problems import STATUS_OF_KIND, AnyRequest
from interfaces.http.protocol_router import protocol_router
from interfaces.http.routing import OwnRouter
from interfaces.request_notes import notes_of

_ANSWERED = {ErrorKind.LIMIT: 429, ErrorKind.UNAVAILABLE: 503, ErrorKind.NOT_FOUND: 404, ErrorKind.TOO_LARGE: 413}
_BAD_REQUEST = 400


def gateway_authorization_router(container: Container) -> OwnRouter:
    """Public: clients have no key, and prove what they are by the parameters of their requests."""
    return protocol_router(
        "/",
        container,
        {"registration_limit": RegistrationLimit(clock=container.clock())},
        routes,
        middleware=[],
        exception_handlers={ServiceError: _of_service, HTTPException: _of_http},
    )


def _of_service(request: AnyRequest, error: ServiceError) -> Response[dict[str, str]]:
    notes_of(request.scope).refused(error)
    status = _ANSWERED.get(error.kind, _BAD_REQUEST)
    if error.kind is ErrorKind.INTERNAL:
        status = STATUS_OF_KIND[error.kind]
    again = {"Retry-After": error.extra["retry_after_s"]} if "retry_after_s" in error.extra else {}
    return _failure(status, error.code, error.detail, again)


def _of_http(_: AnyRequest, error: HTTPException) -> Response[dict[str, str]]:
    return _failure(error.status_code, "invalid_request", "The request cannot be read.", {})


def _failure(status: int, code: str, detail: str, headers: dict[str, str]) -> Response[dict[str, str]]:
    body = {"error": code, "error_description": detail}
    return Response(body, status_code=status, headers={**routes.NO_STORE, **headers})
