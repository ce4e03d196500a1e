"""Errors of the client. An error of the service carries its problem document (RFC 9457)."""

from collections.abc import Mapping
from typing import Any


class DragomanError(Exception):
    """Base of all errors of this package."""


class ConnectionLost(DragomanError):
    """The service was not reached, or the connection broke, also after retries."""


class ApiError(DragomanError):
    """The service rejected a request. `code` is for programs, `detail` is a sentence for people;
    `errors` names faults in the input, each with `path` and `message`. `problem` is the whole
    document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code", "unknown"))
        self.detail = str(problem.get("detail", f"The service answered with status {status}."))
        self.errors: list[dict[str, str]] = list(problem.get("errors", []))
        faults = "; ".join(f"{fault['path']} {fault['message']}" for fault in self.errors)
        super().__init__(f"{self.detail} {faults}".strip() + f" [{self.code}]")


class Invalid(ApiError):
    """400, 413, 422: the request is not valid."""


class Unauthenticated(ApiError):
    """401: there is no valid API key."""


class Forbidden(ApiError):
    """403: the API key may not do that."""


class NotFound(ApiError):
    """404: there is no such object."""


class Conflict(ApiError):
    """409, 412: the object's state, or its version, does not allow it."""


class LimitReached(ApiError):
    """429: a limit is reached."""


class Unavailable(ApiError):
    """502, 503, 504: the service is not available now."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: Invalid,
    422: Invalid,
    429: LimitReached,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def api_error(status: int, body: object) -> ApiError:
    """The error of a response, whose body is a problem document unless something between here and
    the service answered."""
    return _BY_STATUS.get(status, ApiError)(status, body if isinstance(body, Mapping) else {})
