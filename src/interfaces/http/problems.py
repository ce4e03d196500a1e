"""Maps errors to HTTP: every failure is an `application/problem+json` document (RFC 9457)."""

import logging
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, NotRequired, TypedDict

from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import (
    HTTPException,
    InternalServerException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.openapi.datastructures import ResponseSpec
from litestar.types import ExceptionHandlersMap

from domain.errors import ErrorKind, ServiceError, Violation
from interfaces.http.bodies import MAX_FAULTS
from interfaces.http.query_names import query_names
from interfaces.http.requests import MalformedJson
from interfaces.request_notes import notes_of, request_fields

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger(__name__)

STATUS_OF_KIND = {
    ErrorKind.INVALID: 422,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.PRECONDITION: 412,
    ErrorKind.LIMIT: 429,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.INTERNAL: 500,
}

_NUMBERS = ("retry_after_s", "position")
"""Members of a problem that are numbers in JSON."""

AnyRequest = Request[Any, Any, State]


class Fault(TypedDict):
    """One fault in the input: its path (`limits.max_turns`) and a message."""

    path: Annotated[str, "Path of the fault in the input."]
    message: Annotated[str, "What is wrong there, after the path as its subject."]


class Problem(TypedDict):
    """Why a request failed. `code` is stable and machine-readable, `detail` a sentence for a
    person."""

    type: Annotated[str, "`urn:dragoman:problem:` and the code."]
    title: Annotated[str, "Name of the HTTP status."]
    status: Annotated[int, "HTTP status."]
    detail: Annotated[str, "What failed, as a sentence."]
    code: Annotated[str, "Code of the failure, for programs."]
    errors: NotRequired[Annotated[list[Fault], "Faults in the input."]]
    reference: NotRequired[Annotated[str, "Where the service's log has the details of an internal error."]]


def documented(*statuses: int) -> dict[int, ResponseSpec]:
    """The failures of an operation for the OpenAPI document; 400, 401, 422, 429 and 500 always
    apply. Operations with a body also name 413."""
    return described_problems(400, 401, 422, 429, 500, *statuses)


def described_problems(*statuses: int) -> dict[int, ResponseSpec]:
    """Exactly these failures."""
    return {
        status: ResponseSpec(
            data_container=Problem,
            description=HTTPStatus(status).phrase,
            media_type=MEDIA_TYPE,
            generate_examples=False,
        )
        for status in sorted(set(statuses))
    }


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    violations: tuple[Violation, ...] = (),
    extra: Mapping[str, str | int] | None = None,
    headers: dict[str, str] | None = None,
) -> Response[dict[str, object]]:
    """The response for a failure; `extra` are additional members."""
    body: dict[str, object] = {
        **(extra or {}),
        "type": f"urn:dragoman:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if violations:
        body["errors"] = [{"path": fault.path, "message": fault.message} for fault in violations[:MAX_FAULTS]]
    if len(violations) > MAX_FAULTS:
        body["detail"] = f"{detail} It has {len(violations)} faults; these are the first {MAX_FAULTS}."
    return Response(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def from_service_error(request: AnyRequest, error: ServiceError) -> Response[dict[str, object]]:
    notes_of(request.scope).refused(error)
    headers = {"WWW-Authenticate": 'Bearer realm="dragoman"'} if error.kind is ErrorKind.UNAUTHENTICATED else {}
    if "retry_after_s" in error.extra:
        headers["Retry-After"] = error.extra["retry_after_s"]
    return problem(
        STATUS_OF_KIND[error.kind],
        error.code,
        error.detail,
        violations=error.violations,
        extra={name: int(value) if name in _NUMBERS else value for name, value in error.extra.items()},
        headers=headers,
    )


def from_http_exception(request: AnyRequest, exc: HTTPException) -> Response[dict[str, object]]:
    """A failure raised by the framework, such as an unknown path or an invalid parameter."""
    match exc:
        case MalformedJson():
            return problem(400, "json_malformed", exc.detail)
        case ValidationException():
            return _from_validation(request, exc)
        case NotFoundException():
            return problem(404, "route_not_found", "There is nothing at this path.")
        case MethodNotAllowedException():
            detail = "This path does not take this method."
            return problem(405, "method_not_allowed", detail, headers=_allow(exc.headers))
        case RequestEntityTooLarge():
            return problem(
                413, "body_too_large", "The request body is too large: JSON may have up to 10 MiB, a source 50."
            )
        case InternalServerException():
            return from_unexpected(request, exc)
        case _:
            status = HTTPStatus(exc.status_code)
            return problem(exc.status_code, status.name.lower(), f"{status.phrase}.", headers=exc.headers)


def unexpected_reference(request: AnyRequest, exc: Exception) -> str:
    """Log an unexpected error under a new reference, and return the reference."""
    reference = f"err_{secrets.token_hex(8)}"
    logger.error(
        "unhandled error in a request",
        exc_info=exc,
        extra={**request_fields(request.scope), "reference": reference},
    )
    notes_of(request.scope).is_logged = True
    return reference


def from_unexpected(request: AnyRequest, exc: Exception) -> Response[dict[str, object]]:
    """The response to an unexpected error: a reference to the log, and nothing of the exception."""
    reference = unexpected_reference(request, exc)
    detail = f"Something went wrong on our side; the log has the details under {reference}."
    return problem(500, "internal_error", detail, extra={"reference": reference})


def exception_handlers() -> ExceptionHandlersMap:
    """Handlers for every exception of the app."""
    return {ServiceError: from_service_error, HTTPException: from_http_exception, Exception: from_unexpected}


def _from_validation(request: AnyRequest, exc: ValidationException) -> Response[dict[str, object]]:
    faults = [entry for entry in exc.extra or [] if isinstance(entry, dict)]
    if any(fault.get("key") == "data" for fault in faults):
        return problem(400, "body_missing", "This request needs a JSON body.")
    # A parameter may have another name in our code: the framework reserves `state`.
    names = query_names(request.scope["route_handler"])
    violations = tuple(
        Violation(
            path=names.get(key := str(fault.get("key", "")), key), message=str(fault.get("message", "is not valid"))
        )
        for fault in faults
    )
    return problem(422, "parameters_invalid", "A parameter of the request is not valid.", violations=violations)


def _allow(headers: dict[str, str] | None) -> dict[str, str] | None:
    allowed = next((value for name, value in (headers or {}).items() if name.lower() == "allow"), None)
    return None if allowed is None else {"Allow": allowed}
