"""The one error tree: a stable code, a kind, and a sentence that is safe to show."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from domain.hidden_text import escaped

T = TypeVar("T")

_LONGEST_SHOWN = 300
"""Characters of an identifier in an error."""


class ErrorKind(StrEnum):
    """How a caller should react. Each interface maps the kinds once."""

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
    """One fault of an input: `path` locates it (`limits.max_turns`), `message` describes it."""

    path: str
    message: str


class ServiceError(Exception):
    """An expected failure of a use case.

    `code` is stable and machine-readable; `detail` is one sentence for people and never contains
    the text of a foreign exception. `extra` holds facts for the caller, such as the id of a
    conflicting run.
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
    """An error for wrong input; nothing was changed."""
    return ServiceError(code, ErrorKind.INVALID, detail, violations=violations)


def not_found(what: str, identifier: str) -> ServiceError:
    """An error for a `what` ("run", "MCP server") that does not exist in the caller's
    organization. A long identifier is not repeated in full."""
    code = f"{what.lower().replace(' ', '_')}_not_found"
    shown = identifier if len(identifier) <= _LONGEST_SHOWN else f"{identifier[:_LONGEST_SHOWN]}…"
    legible = "".join(each if each.isprintable() else escaped(each) for each in shown)
    return ServiceError(code, ErrorKind.NOT_FOUND, f"There is no {what} '{legible}'.")


def existing(value: T | None, what: str, identifier: str) -> T:
    """The value. Raises `not_found` for None."""
    if value is None:
        raise not_found(what, identifier)
    return value


def require_version(what: str, stored: int, *, expected: int | None) -> None:
    """Raises PRECONDITION `version_conflict` if a `what` has another version than the expected one;
    None expects any."""
    if expected not in (None, stored):
        detail = f"The {what} is at version {stored}, not {expected}."
        raise ServiceError("version_conflict", ErrorKind.PRECONDITION, detail)


def conflict(code: str, detail: str, **extra: str) -> ServiceError:
    """An error for valid input that does not fit the current state."""
    return ServiceError(code, ErrorKind.CONFLICT, detail, extra=extra)


def is_storage_away(error: BaseException) -> bool:
    """Whether the error, or one in its group, reports that storage is unavailable. The interrupted
    work has not failed, and no outcome must be recorded for it."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_storage_away, error.exceptions))
    return isinstance(error, ServiceError) and error.code == "storage_unavailable"
