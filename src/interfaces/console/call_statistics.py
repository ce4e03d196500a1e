"""Statistics of tool calls from their audit entries: how many, how many failed, how long they
took."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import Principal

MOST_ENTRIES = 2_000
"""Newest entries of a period that are read for statistics."""
_FAILED = AuditAction.TOOL_FAILED
_BLOCKED = AuditAction.TOOL_BLOCKED


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSum:
    """Calls of a tool, or of all tools (`tool` is None). Times are seconds of the calls that were
    sent."""

    tool: str | None
    calls: int
    failed: int
    blocked: int
    median_s: float | None
    p95_s: float | None


async def newest_entries(
    audit: ListAuditEvents, principal: Principal, *, since: datetime, until: datetime | None = None
) -> tuple[list[AuditEvent], bool]:
    """At most `MOST_ENTRIES` of all kinds, and whether there are more: the trail has no index by
    tool or server, so a filter would read the whole period."""
    found: list[AuditEvent] = []
    cursor: str | None = None
    while len(found) < MOST_ENTRIES:
        page = await audit.execute(
            principal=principal,
            wanted=AuditFilter(since=since, until=until),
            page=PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor),
        )
        found += page.items
        if (cursor := page.next_cursor) is None:
            return found, False
    return found, True


def call_sums(entries: Iterable[AuditEvent]) -> tuple[CallSum, tuple[CallSum, ...]]:
    """The sum of all, and those of each tool, most called first. Entries that are no outcome of a
    call are ignored."""
    outcomes = [each for each in entries if each.tool is not None and each.action in _OUTCOMES]
    by_tool: dict[str, list[AuditEvent]] = defaultdict(list)
    for each in outcomes:
        by_tool[each.tool or ""].append(each)
    tools = (_sum(tool, entries) for tool, entries in by_tool.items())
    return _sum(None, outcomes), tuple(sorted(tools, key=lambda each: (-each.calls, each.tool or "")))


def percentile(values: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile (`share` of 0 to 1), None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def _sum(tool: str | None, entries: Sequence[AuditEvent]) -> CallSum:
    took = [each.duration_ms / 1000 for each in entries if each.duration_ms is not None and each.action is not _BLOCKED]
    return CallSum(
        tool=tool,
        calls=len(entries),
        failed=sum(each.action is _FAILED for each in entries),
        blocked=sum(each.action is _BLOCKED for each in entries),
        median_s=percentile(took, 0.5),
        p95_s=percentile(took, 0.95),
    )


_OUTCOMES = frozenset({AuditAction.TOOL_EXECUTED, _FAILED, _BLOCKED})
