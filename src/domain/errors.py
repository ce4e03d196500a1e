"""The one error tree: what went wrong (code), which kind it is, and a sentence that is safe to show."""

from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """How a caller should react; each outer surface maps kinds once."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    PRECONDITION = "precondition"
    LIMIT = "limit"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One fault in an input: `path` points at it (`limits.max_turns`), `message` says what is wrong."""

    path: str
    message: str


class ServiceError(Exception):
    """An expected failure of a use case.

    `code` is stable and machine-readable, `detail` one sentence for a person. `detail` never carries the text of a
    foreign exception. `extra` holds facts the caller may need, such as the id of the run in the way.
    """

    def __init__(
        self,
        code: str,
        kind: ErrorKind,
        detail: str,
        *,
        violations: tuple[Violation, ...] = (),
        extra: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.kind = kind
        self.detail = detail
        self.violations = violations
        self.extra = extra or {}


def invalid(code: str, detail: str, *violations: Violation) -> ServiceError:
    """The input is wrong; nothing was changed."""
    return ServiceError(code, ErrorKind.INVALID, detail, violations=violations)


def not_found(what: str, identifier: str) -> ServiceError:
    """`what` ("run", "MCP server") does not exist in the caller's organization."""
    code = f"{what.lower().replace(' ', '_')}_not_found"
    return ServiceError(code, ErrorKind.NOT_FOUND, f"There is no {what} {identifier!r}.")


def conflict(code: str, detail: str, **extra: str) -> ServiceError:
    """The input is fine but does not fit the present state."""
    return ServiceError(code, ErrorKind.CONFLICT, detail, extra=extra)


def is_storage_away(error: BaseException) -> bool:
    """Whether it, or one it groups, says that nothing can be stored or read at the moment. What it stopped has not failed, and
    no outcome is to be made of it."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_storage_away, error.exceptions))
    return isinstance(error, ServiceError) and error.code == "storage_unavailable"
