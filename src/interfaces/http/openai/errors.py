"""Maps errors to OpenAI's shape: `{"error": {message, type, code, param}}`."""

import logging
from collections.abc import Callable, Mapping
from typing import TypedDict

from litestar import Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap

from domain.errors import ErrorKind, ServiceError, Violation
from domain.ids import RunId
from domain.runs.run import Run
from interfaces.http.problems import (
    AnyRequest,
    exception_handlers,
    from_http_exception,
    from_service_error,
    from_unexpected,
)

logger = logging.getLogger(__name__)

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_OF_CHATS = {
    "output_schema": "response_format",
    "model_settings.effort": "reasoning_effort",
    "model_settings.max_output_tokens": "max_completion_tokens",
}
_OF_RESPONSES = {
    "output_schema": "text.format.schema",
    "model_settings.effort": "reasoning.effort",
    "model_settings.verbosity": "text.verbosity",
}
"""Where the protocols have what we have at these paths, if under another name."""
_CODES = {"agent_not_found": "model_not_found", "token_missing": "invalid_api_key", "token_invalid": "invalid_api_key"}
_PARAMS = {"agent_not_found": "model", "agent_disabled": "model"}
NO_RETRY = {"x-should-retry": "false"}
"""OpenAI's clients repeat requests by themselves, unless an answer says this. An agent that failed
or that waits must not be started once more by its client's library."""


class ErrorBody(TypedDict):
    message: str
    type: str
    code: str | None
    param: str | None


class ErrorView(TypedDict):
    error: ErrorBody


def error_view(status: int, code: str, message: str, param: str | None = None) -> ErrorView:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {
        "error": {
            "message": message,
            "type": kind,
            "code": _CODES.get(code, code),
            "param": param or _PARAMS.get(code),
        }
    }


def run_error_view(run: Run) -> tuple[int, ErrorView]:
    """The status and the error of a run that ended without an answer."""
    if run.error is not None:
        return 500, error_view(500, run.error.code, run.error.detail)
    return 409, error_view(409, f"run_{run.status}", f"The run {run.id} was {run.status}.")


def relocated(error: ServiceError, path_of: Callable[[str], str]) -> ServiceError:
    """The error with the paths of its faults, and its parameter, as they are elsewhere."""
    faults = tuple(Violation(path=path_of(fault.path), message=fault.message) for fault in error.violations)
    given = {name: path_of(value) if name == "param" else value for name, value in error.extra.items()}
    return ServiceError(error.code, error.kind, error.detail, violations=faults, extra=given)


def unsupported(param: str, message: str) -> ServiceError:
    """The error for a part of the protocol that Dragoman does not have."""
    return ServiceError("unsupported_parameter", ErrorKind.INVALID, message, extra={"param": param})


def not_implemented(message: str) -> ServiceError:
    """The error for an optional endpoint of the protocol that Dragoman does not have."""
    return ServiceError("endpoint_not_implemented", ErrorKind.NOT_FOUND, message)


def stream_error(run_id: RunId, error: Exception) -> ErrorView:
    """The error that ends a stream, as its last item. Without it, libraries take what came for the
    whole answer. It is logged; the text of an unexpected error stays here."""
    if isinstance(error, ServiceError):
        logger.info("stream of a run ended by the server", extra={"run_id": run_id, "code": error.code})
        return error_view(500, error.code, error.detail)
    logger.error("stream of a run failed", exc_info=error, extra={"run_id": run_id})
    return error_view(500, "internal_error", f"Something went wrong on our side; the log has the details at {run_id}.")


def handlers_by_path(path: str) -> ExceptionHandlersMap:
    """Handlers for an app with these routes below `path`: unknown paths and methods have no route,
    so no router's own handlers."""

    def from_http(request: AnyRequest, exc: HTTPException) -> Response[ErrorView] | Response[dict[str, object]]:
        is_ours = f"{request.scope['path']}/".startswith(f"{path}/")
        return _from_http_exception(request, exc) if is_ours else from_http_exception(request, exc)

    return {**exception_handlers(), HTTPException: from_http}


def openai_exception_handlers() -> ExceptionHandlersMap:
    """Handlers for every exception of a request to `/openai/v1`."""
    return {ServiceError: _from_service_error, HTTPException: _from_http_exception, Exception: _from_unexpected}


def _from_service_error(request: AnyRequest, error: ServiceError) -> Response[ErrorView]:
    status = 400 if error.kind is ErrorKind.INVALID else None
    names = _OF_RESPONSES if request.scope["path"].endswith("/responses") else _OF_CHATS
    shown = relocated(error, lambda path: _own(path, names))
    param = shown.extra.get("param") or next((fault.path for fault in shown.violations), None)
    return _converted(from_service_error(request, shown), status=status, param=param)


def _from_http_exception(request: AnyRequest, exc: HTTPException) -> Response[ErrorView]:
    problem = from_http_exception(request, exc)
    faults = problem.content.get("errors")
    param = _own(str(faults[0]["path"]), {}) if isinstance(faults, list) and faults else None
    return _converted(problem, status=400 if problem.status_code == 422 else None, param=param)


def _own(path: str, names: Mapping[str, str]) -> str:
    """Where the client's protocol has what we have at this path, as its clients write it:
    `input[2].content[0].text`."""
    first = path if path in names else path.partition(".")[0]
    own = names[first] if first in names else path.removeprefix("model_settings.").removeprefix("limits.")
    start, *steps = own.split(".")
    return start + "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in steps)


def _from_unexpected(request: AnyRequest, exc: Exception) -> Response[ErrorView]:
    return _converted(from_unexpected(request, exc))


def _converted(
    problem: Response[dict[str, object]], *, status: int | None = None, param: str | None = None
) -> Response[ErrorView]:
    """A problem in OpenAI's shape: its faults become part of the message."""
    status = status or int(problem.status_code or 500)
    faults = problem.content.get("errors")
    named = [f"{fault['path']}: {fault['message']}" for fault in faults] if isinstance(faults, list) else []
    message = " ".join([str(problem.content["detail"]), *(f"{text}." for text in named)])
    view = error_view(status, str(problem.content["code"]), message, param)
    headers = {**dict(problem.headers), **(NO_RETRY if status == 409 else {})}
    return Response(view, status_code=status, media_type="application/json", headers=headers)
