"""Adds calls of tools to the sums of their days, from their stored audit entries."""

from collections.abc import Iterable

from sqlalchemy import Connection

from domain.audit.chain import SEALED_FIELDS, Entry
from domain.audit.event import AuditAction
from domain.ids import OrganizationId
from infrastructure.persistence.tables import tool_usage
from infrastructure.persistence.usage.rows import adding_to

SUMMED = ("calls", "failed_calls", "blocked_calls", "duration_ms")
_ACTION, _AT, _TOOL, _DURATION = map(SEALED_FIELDS.index, ("action", "at", "tool", "duration_ms"))
_FAILED, _BLOCKED = AuditAction.TOOL_FAILED.value, AuditAction.TOOL_BLOCKED.value
_OUTCOMES = frozenset({AuditAction.TOOL_EXECUTED.value, _FAILED, _BLOCKED})
_DAY_US = 86_400_000_000
_EPOCH_DAY = 719_163
"""The ordinal of 1970-01-01."""

_add = adding_to(tool_usage, SUMMED)

Sums = dict[tuple[int, str], list[int]]
"""By day and tool, in the order of SUMMED."""


def sums_of_calls(entries: Iterable[Entry]) -> Sums:
    """The sums of the entries that are outcomes of calls. What is no such entry, or has no readable
    values, is left out."""
    sums: Sums = {}
    for entry in entries:
        action, at, tool, duration = entry[_ACTION], entry[_AT], entry[_TOOL], entry[_DURATION]
        if action not in _OUTCOMES or not isinstance(at, int) or not isinstance(tool, str):
            continue
        of_tool = sums.setdefault((at // _DAY_US + _EPOCH_DAY, tool), [0, 0, 0, 0])
        of_tool[0] += 1
        of_tool[1] += action == _FAILED
        of_tool[2] += action == _BLOCKED
        of_tool[3] += duration if isinstance(duration, int) and action != _BLOCKED else 0
    return sums


def add_calls_of_tools(connection: Connection, organization_id: OrganizationId, sums: Sums) -> None:
    """Add them in the transaction that seals their entries: each entry is sealed once, so each call
    is counted once."""
    if sums:
        rows: list[dict[str, object]] = [
            {"organization_id": organization_id, "day": day, "tool": tool, **dict(zip(SUMMED, figures, strict=True))}
            for (day, tool), figures in sorted(sums.items())
        ]
        _add.run(connection, *rows)
