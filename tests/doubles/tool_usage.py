"""Daily sums of tool calls, in memory."""

from datetime import date

from application.system.pages import Page, PageRequest
from application.usage.ports import ToolUsageFilter
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import OrganizationId
from domain.teams import Teams, sees
from domain.tools.names import AGENT_PREFIX, is_tool_of
from domain.usage.daily_usage import UsageKey
from domain.usage.tool_usage import ToolUsageSum
from domain.workflows.tool_names import RESERVED_NAMES
from tests.doubles.paging import SortKey, oldest_first
from tests.doubles.state import InMemoryState

_OUTCOMES = (AuditAction.TOOL_EXECUTED, AuditAction.TOOL_FAILED, AuditAction.TOOL_BLOCKED)


class InMemoryToolUsage:
    """The `ToolUsageReports` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def page(
        self, organization_id: OrganizationId, wanted: ToolUsageFilter, request: PageRequest
    ) -> Page[ToolUsageSum]:
        """Newest day first, then by tool."""
        groups: dict[tuple[date | None, str | None], list[AuditEvent]] = {}
        for call in self._calls(organization_id):
            if not self._is_seen(call.tool or "", wanted.teams):
                continue
            day = call.at.date()
            if (wanted.since or day) <= day <= (wanted.until or day) and wanted.tool in (None, call.tool):
                key = (day if UsageKey.DAY in wanted.by else None, call.tool if UsageKey.TOOL in wanted.by else None)
                groups.setdefault(key, []).append(call)
        return oldest_first([_sum(*key, calls) for key, calls in groups.items()], _order, request)

    def _is_seen(self, tool: str, teams: Teams) -> bool:
        servers, agents = self._state.servers.values(), [each[-1] for each in self._state.agents.values()]
        if teams is None:
            return True
        if tool.startswith("mcp__"):
            return any(is_tool_of(each.config.slug, tool) and sees(teams, each.team) for each in servers)
        if tool.startswith(AGENT_PREFIX):
            return any(tool == f"{AGENT_PREFIX}{each.config.name}" and sees(teams, each.team) for each in agents)
        return tool in RESERVED_NAMES

    async def first_day(self, organization_id: OrganizationId) -> date | None:
        """The day of the oldest call."""
        return min((call.at.date() for call in self._calls(organization_id)), default=None)

    def _calls(self, organization_id: OrganizationId) -> list[AuditEvent]:
        sealed = self._state.sealed_entries
        return [each for each in sealed if each.organization_id == organization_id and each.action in _OUTCOMES]


def _sum(day: date | None, tool: str | None, calls: list[AuditEvent]) -> ToolUsageSum:
    return ToolUsageSum(
        day=day,
        tool=tool,
        calls=len(calls),
        failed_calls=sum(call.action is AuditAction.TOOL_FAILED for call in calls),
        blocked_calls=sum(call.action is AuditAction.TOOL_BLOCKED for call in calls),
        duration_ms=sum(call.duration_ms or 0 for call in calls if call.action is not AuditAction.TOOL_BLOCKED),
    )


def _order(entry: ToolUsageSum) -> SortKey:
    """Falling days as rising numbers."""
    day = 0 if entry.day is None else date.max.toordinal() - entry.day.toordinal()
    return (f"{day:08d}", entry.tool or "")
