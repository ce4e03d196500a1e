"""Errors of A2A on both bindings: google.rpc.Status over HTTP, error objects over JSON-RPC."""

from dataclasses import dataclass
from typing import cast

import msgspec
from litestar import Response
from litestar.exceptions import HTTPException
from litestar.response.base import ASGIResponse
from litestar.types import ExceptionHandlersMap

from domain.errors import ErrorKind, ServiceError, conflict, invalid
from domain.ids import RunId
from domain.json_value import JsonObject, JsonValue
from interfaces.http.openai.errors import stream_error
from interfaces.http.problems import (
    STATUS_OF_KIND,
    AnyRequest,
    from_http_exception,
    from_service_error,
    from_unexpected,
)

MEDIA_TYPE = "application/a2a+json"
DOMAIN = "a2a-protocol.org"
_OURS = "dragoman"
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_OTHER = -32000
_KEEPS_STATUS = frozenset({401, 403, 413, 429, 503})
"""HTTP statuses of JSON-RPC errors that clients and proxies act on; others are 200."""


@dataclass(frozen=True, slots=True)
class A2aError:
    """A kind of error of the protocol."""

    reason: str
    rpc: int
    status: int
    name: str


_TASK_NOT_FOUND = A2aError("TASK_NOT_FOUND", -32001, 404, "NOT_FOUND")
_NOT_CANCELABLE = A2aError("TASK_NOT_CANCELABLE", -32002, 400, "FAILED_PRECONDITION")
_UNSUPPORTED = A2aError("UNSUPPORTED_OPERATION", -32004, 400, "FAILED_PRECONDITION")
_CONTENT_TYPE = A2aError("CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, "INVALID_ARGUMENT")
_VERSION = A2aError("VERSION_NOT_SUPPORTED", -32009, 400, "FAILED_PRECONDITION")

_BY_CODE = {
    "run_not_found": _TASK_NOT_FOUND,
    "push_config_not_found": _TASK_NOT_FOUND,
    "task_not_cancelable": _NOT_CANCELABLE,
    "content_type_unsupported": _CONTENT_TYPE,
    "a2a_version_unsupported": _VERSION,
}
_RPC_BY_CODE = {"json_malformed": -32700, "rpc_invalid": -32600, "rpc_method_unknown": -32601}
_RPC_BY_STATUS = {400: -32602, 404: -32602, 422: -32602, 500: -32603}
_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    413: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def unsupported(detail: str) -> ServiceError:
    """An operation that the task does not take (UnsupportedOperationError)."""
    return conflict("operation_unsupported", detail)


def not_cancelable(task_id: str) -> ServiceError:
    return conflict("task_not_cancelable", f"The task {task_id} has ended.")


def unsupported_content(media_type: str) -> ServiceError:
    return invalid("content_type_unsupported", f"Agents do not take the media type {media_type[:100]!r}.")


def unsupported_version(version: str) -> ServiceError:
    return invalid(
        "a2a_version_unsupported",
        f"The A2A version {version[:20] or '0.3'!r} is not supported. Send the header A2A-Version: 1.0.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error as both bindings tell it."""

    kind: A2aError
    message: str
    details: list[JsonValue]
    headers: dict[str, str]

    def rest(self) -> JsonObject:
        """A google.rpc.Status."""
        about: JsonObject = {"code": self.kind.status, "status": self.kind.name, "message": self.message}
        return {"error": {**about, "details": self.details}}

    def rpc(self, request_id: JsonValue) -> JsonObject:
        error: JsonObject = {"code": self.kind.rpc, "message": self.message, "data": self.details}
        return {"jsonrpc": "2.0", "id": request_id, "error": error}

    @property
    def rpc_status(self) -> int:
        return self.kind.status if self.kind.status in _KEEPS_STATUS else 200

    def rpc_response(self, request_id: JsonValue) -> ASGIResponse:
        body = msgspec.json.encode(self.rpc(request_id))
        return ASGIResponse(body=body, status_code=self.rpc_status, headers=self.headers, media_type="application/json")

    def response(self, media_type: str) -> Response[JsonObject]:
        """The answer to a request of the HTTP binding."""
        return Response(self.rest(), status_code=self.kind.status, media_type=media_type, headers=self.headers)


def media_type_for(request: AnyRequest) -> str:
    """The media type of the protocol for clients that name it; others may know JSON only."""
    named = f"{request.headers.get('accept', '')} {request.headers.get('content-type', '')}".lower()
    return MEDIA_TYPE if MEDIA_TYPE in named else "application/json"


def failure(request: AnyRequest, error: Exception) -> Failure:
    """The failure of a request; an unexpected error is logged."""
    if isinstance(error, ServiceError):
        return _of_problem(from_service_error(request, error))
    if isinstance(error, HTTPException):
        return _of_problem(from_http_exception(request, error))
    return _of_problem(from_unexpected(request, error))


def failure_of_stream(run_id: RunId, error: Exception) -> Failure:
    """The failure that ends a stream; it is logged."""
    told = stream_error(run_id, error)["error"]
    status = STATUS_OF_KIND[error.kind] if isinstance(error, ServiceError) else 500
    return _failure(str(told["code"]), told["message"], status)


def rest_exception_handlers() -> ExceptionHandlersMap:
    """Handlers of the HTTP binding."""
    return {ServiceError: _rest, HTTPException: _rest, Exception: _rest}


def rpc_exception_handlers() -> ExceptionHandlersMap:
    """Handlers of the JSON-RPC binding, for requests that were refused before they were read."""
    return {ServiceError: _rpc, HTTPException: _rpc, Exception: _rpc}


def _rest(request: AnyRequest, error: Exception) -> Response[JsonObject]:
    return failure(request, error).response(media_type_for(request))


def _rpc(request: AnyRequest, error: Exception) -> Response[JsonObject]:
    found = failure(request, error)
    return Response(found.rpc(None), status_code=found.rpc_status, media_type="application/json", headers=found.headers)


def _of_problem(problem: Response[dict[str, object]]) -> Failure:
    content = problem.content
    faults = cast("list[dict[str, str]]", content.get("errors", []))
    headers = {str(name): str(value) for name, value in dict(problem.headers).items()}
    found = _failure(str(content["code"]), str(content["detail"]), int(problem.status_code or 500), headers=headers)
    if faults:
        violations: list[JsonValue] = [{"field": fault["path"], "description": fault["message"]} for fault in faults]
        found.details.append({"@type": _BAD_REQUEST, "fieldViolations": violations})
    return found


def _failure(code: str, message: str, status: int, *, headers: dict[str, str] | None = None) -> Failure:
    kind = _BY_CODE.get(code) or _kind(code, status)
    info: JsonObject = {
        "@type": _INFO,
        "reason": kind.reason,
        "domain": DOMAIN if code in _BY_CODE or kind is _UNSUPPORTED else _OURS,
        "metadata": {"code": code},
    }
    return Failure(kind=kind, message=message, details=[info], headers=headers or {})


def _kind(code: str, status: int) -> A2aError:
    """Errors that the protocol has no type for. What conflicts with the state of a task is not
    supported there."""
    if status == STATUS_OF_KIND[ErrorKind.CONFLICT]:
        return _UNSUPPORTED
    rpc = _RPC_BY_CODE.get(code, _RPC_BY_STATUS.get(status, _OTHER))
    status = 400 if status == STATUS_OF_KIND[ErrorKind.INVALID] else status
    return A2aError(code.upper(), rpc, status, _NAMES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT"))
