"""Findings of `dragoman doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`advice` is the remedy, if any."""

    check: str
    state: State
    detail: str
    advice: str = ""


def well(check: str, detail: str) -> Finding:
    return Finding(check=check, state=State.OK, detail=detail)


def warning(check: str, detail: str, advice: str) -> Finding:
    return Finding(check=check, state=State.WARNING, detail=detail, advice=advice)


def problem(check: str, detail: str, advice: str) -> Finding:
    return Finding(check=check, state=State.PROBLEM, detail=detail, advice=advice)
