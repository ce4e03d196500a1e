"""GetToolUsage: sums of tool calls by day and tool, and who reads them."""

from datetime import date

import pytest
from pytest_mock import MockerFixture

from application.system.pages import Page, PageRequest
from application.usage.ports import ToolUsageFilter, ToolUsageReports
from application.usage.queries import GetToolUsage, ToolUsage
from domain.identity.role import Role
from domain.usage.daily_usage import UsageKey
from domain.usage.tool_usage import ToolUsageSum
from tests.builders import ORG
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

FIRST, LAST = date(2026, 1, 1), date(2026, 1, 2)
WANTED = ToolUsageFilter(since=FIRST, until=LAST)
USED = ToolUsageSum(day=None, tool="read", calls=5, failed_calls=1, blocked_calls=1, duration_ms=800)


@pytest.mark.requirement("A10")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_the_sums_with_the_first_counted_day(mocker: MockerFixture, role: Role) -> None:
    reports = mocker.create_autospec(ToolUsageReports, instance=True)
    reports.page.return_value, reports.first_day.return_value = Page(items=(USED,), next_cursor=None), FIRST

    found = await GetToolUsage(tool_usage=reports).execute(a_principal(role), WANTED)

    assert found == ToolUsage(page=Page(items=(USED,), next_cursor=None), first_day=FIRST)
    reports.page.assert_awaited_once_with(ORG, WANTED, PageRequest())


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (ToolUsageFilter(since=LAST, until=FIRST), "usage_days_invalid"),
        (ToolUsageFilter(by=frozenset({UsageKey.TOOL, UsageKey.AGENT})), "usage_keys_invalid"),
        (ToolUsageFilter(by=frozenset({UsageKey.TOOL, UsageKey.PERSON})), "usage_keys_invalid"),
    ],
)
async def test_days_in_the_wrong_order_and_other_dimensions_are_refused_and_nothing_is_read(
    mocker: MockerFixture, wanted: ToolUsageFilter, code: str
) -> None:
    unread = mocker.create_autospec(ToolUsageReports, instance=True)
    with refused(code):
        await GetToolUsage(tool_usage=unread).execute(a_principal(Role.VIEWER), wanted)
    unread.page.assert_not_awaited()


async def test_a_storage_failure_reaches_the_caller(mocker: MockerFixture) -> None:
    failing = mocker.create_autospec(ToolUsageReports, instance=True)
    failing.page.side_effect = storage_away()
    with refused("storage_unavailable"):
        await GetToolUsage(tool_usage=failing).execute(a_principal(Role.VIEWER), WANTED)


def test_the_mean_time_is_that_of_calls_that_were_sent() -> None:
    assert USED.mean_s == 0.2
    assert ToolUsageSum(day=None, tool="t", calls=1, failed_calls=0, blocked_calls=1, duration_ms=0).mean_s is None
