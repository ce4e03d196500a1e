"""What a check of `dragoman doctor` saw."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`advice` says what to do about it, where something can be done."""

    check: str
    state: State
    detail: str
    advice: str = ""


def well(check: str, detail: str) -> Finding:
    """As it should be."""
    return Finding(check=check, state=State.OK, detail=detail)


def warning(check: str, detail: str, advice: str) -> Finding:
    """Works, but not as it could."""
    return Finding(check=check, state=State.WARNING, detail=detail, advice=advice)


def problem(check: str, detail: str, advice: str) -> Finding:
    """Something will not work."""
    return Finding(check=check, state=State.PROBLEM, detail=detail, advice=advice)
