"""Sums of tool calls by day, which grow as audit entries are sealed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from application.audit.seal_audit import SealAudit
from application.system.pages import PageRequest
from application.usage.ports import ToolUsageFilter
from domain.audit.event import AuditAction, AuditEvent
from domain.usage.daily_usage import UsageKey
from domain.usage.tool_usage import ToolUsageSum
from tests.builders import ORG, OTHER_ORG, START, a_server, after, an_agent, an_audit_event
from tests.contract.stores import Stores
from tests.doubles.audit_chain import GivenSealKeys
from tests.doubles.surroundings import FixedClock

TODAY = START.date()
BY_BOTH = ToolUsageFilter(by=frozenset({UsageKey.DAY, UsageKey.TOOL}))


def call(
    number: int, tool: str = "read", action: AuditAction = AuditAction.TOOL_EXECUTED, *, days: int = 0, ms: int = 40
) -> AuditEvent:
    return replace(
        an_audit_event(number),
        action=action,
        tool=tool,
        duration_ms=ms,
        at=START + timedelta(days=days, seconds=number),
    )


async def seal(stores: Stores, *calls: AuditEvent) -> None:
    for each in calls:
        await stores.audit.record(each)
    keys, clock = GivenSealKeys(b"o" * 32), FixedClock(start=after(60))
    await SealAudit(seals=stores.audit_seals, keys=keys, clock=clock, batch=3).sweep()


async def sums(stores: Stores, wanted: ToolUsageFilter = BY_BOTH) -> tuple[ToolUsageSum, ...]:
    return (await stores.tool_usage.page(ORG, wanted, PageRequest())).items


@pytest.mark.requirement("A10", "U6")
async def test_calls_are_summed_by_day_and_tool_once_when_they_are_sealed(stores: Stores) -> None:
    await stores.audit.record(call(1))
    assert (await sums(stores), await stores.tool_usage.first_day(ORG)) == ((), None)
    failed, blocked = AuditAction.TOOL_FAILED, AuditAction.TOOL_BLOCKED
    await seal(stores, call(2, action=failed, ms=60), call(3, action=blocked), call(4, "write"), call(5, days=-1))
    await seal(stores, call(6), an_audit_event(7))
    yesterday = TODAY - timedelta(days=1)
    assert await sums(stores) == (
        ToolUsageSum(day=TODAY, tool="read", calls=4, failed_calls=1, blocked_calls=1, duration_ms=140),
        ToolUsageSum(day=TODAY, tool="write", calls=1, failed_calls=0, blocked_calls=0, duration_ms=40),
        ToolUsageSum(day=yesterday, tool="read", calls=1, failed_calls=0, blocked_calls=0, duration_ms=40),
    )
    assert await stores.tool_usage.first_day(ORG) == yesterday
    assert await stores.tool_usage.first_day(OTHER_ORG) is None
    assert (await stores.tool_usage.page(OTHER_ORG, BY_BOTH, PageRequest())).items == ()


@pytest.mark.requirement("A10")
async def test_sums_of_calls_are_of_the_days_and_the_tool_asked_for_in_pages(stores: Stores) -> None:
    await seal(stores, call(1), call(2, "write"), call(3, days=-1), call(4, "write", days=-2))
    by_tool = await sums(stores, ToolUsageFilter())
    assert [(each.day, each.tool, each.calls) for each in by_tool] == [(None, "read", 2), (None, "write", 2)]
    by_day = await sums(stores, ToolUsageFilter(by=frozenset({UsageKey.DAY}), tool="write"))
    assert [(each.day, each.tool, each.calls) for each in by_day] == [
        (TODAY, None, 1),
        (TODAY - timedelta(days=2), None, 1),
    ]
    recent = replace(BY_BOTH, since=TODAY - timedelta(days=1), until=TODAY)
    first = await stores.tool_usage.page(ORG, recent, PageRequest(limit=2))
    rest = await stores.tool_usage.page(ORG, recent, PageRequest(limit=2, cursor=first.next_cursor))
    found = [(each.day, each.tool) for each in (*first.items, *rest.items)]
    assert found == [(TODAY, "read"), (TODAY, "write"), (TODAY - timedelta(days=1), "read")]
    assert rest.next_cursor is None


@pytest.mark.requirement("P2")
async def test_of_tools_that_do_not_say_whose_they_are_only_the_services_own_are_seen_by_all(stores: Stores) -> None:
    await stores.agents.add(an_agent(), an_audit_event(80, action=AuditAction.AGENT_CREATED))
    await stores.servers.add(a_server(), an_audit_event(81, action=AuditAction.MCP_SERVER_CREATED))
    seen = [
        f"agent__{an_agent().config.name}",
        f"mcp__{a_server().config.slug}__read",
        "internet_search",
        "search_tools",
    ]
    hidden = ["merge_with_rival", "agent__unknown", "mcp__unknown__read", "show_in_client"]
    await seal(stores, *(call(number, tool) for number, tool in enumerate((*seen, *hidden), start=1)))
    told = {each.tool for each in await sums(stores, ToolUsageFilter(teams=frozenset({"sales"})))}
    assert told == set(seen)
    assert {each.tool for each in await sums(stores)} == {*seen, *hidden}
