"""Sums of tool calls from audit entries."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.system.pages import MAX_PAGE_SIZE, Page
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.role import Role
from interfaces.console.call_statistics import MOST_ENTRIES, CallSum, call_sums, newest_entries, percentile
from tests.builders import START, an_audit_event
from tests.unit.application.actors import a_principal


def entry(number: int, action: AuditAction, tool: str | None, duration_ms: int | None = None) -> AuditEvent:
    return replace(an_audit_event(number), action=action, tool=tool, duration_ms=duration_ms)


def test_calls_are_summed_by_tool_and_refused_ones_took_no_time() -> None:
    total, by_tool = call_sums(
        [
            entry(1, AuditAction.TOOL_EXECUTED, "look", 100),
            entry(2, AuditAction.TOOL_EXECUTED, "look", 300),
            entry(3, AuditAction.TOOL_FAILED, "look", 2000),
            entry(4, AuditAction.TOOL_BLOCKED, "note", 0),
            entry(5, AuditAction.TOOL_APPROVED, "note"),
            entry(6, AuditAction.AGENT_CREATED, None),
        ]
    )
    assert total == CallSum(tool=None, calls=4, failed=1, blocked=1, median_s=0.3, p95_s=2.0)
    assert [(each.tool, each.calls, each.failed, each.blocked) for each in by_tool] == [
        ("look", 3, 1, 0),
        ("note", 1, 0, 1),
    ]
    assert by_tool[1].median_s is None


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, None), ([7.0], 0.95, 7.0), ([3, 1, 2], 0.5, 2), ([1, 2, 3, 4], 0.5, 2), (list(range(1, 101)), 0.95, 95)],
)
def test_a_percentile_is_the_nearest_rank(values: list[float], share: float, expected: float | None) -> None:
    assert percentile(values, share) == expected


async def test_statistics_read_a_bounded_number_of_newest_entries_and_no_filtered_period(mocker: MockerFixture) -> None:
    reads = mocker.create_autospec(ListAuditEvents, instance=True)
    full = Page(items=tuple(an_audit_event(number) for number in range(MAX_PAGE_SIZE)), next_cursor="more")
    reads.execute.return_value = full
    found, is_bounded = await newest_entries(reads, a_principal(Role.VIEWER), since=START)
    assert (len(found), is_bounded) == (MOST_ENTRIES, True)
    assert reads.execute.await_count == MOST_ENTRIES // MAX_PAGE_SIZE
    assert all(call.kwargs["wanted"] == AuditFilter(since=START) for call in reads.execute.await_args_list)
    reads.execute.return_value = Page(items=full.items[:1])
    assert await newest_entries(reads, a_principal(Role.VIEWER), since=START) == ([full.items[0]], False)
