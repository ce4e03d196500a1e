"""The contract of `AuditLog`. That stores write their entries with their changes is in the stores'
own suites."""

from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import DECISIONS, AuditAction
from tests.builders import KEY, ORG, OTHER_ORG, RUN, SERVER, a_run_id, after, an_audit_event
from tests.contract.paging import all_of, pages_of
from tests.contract.stores import Stores

ENTRIES = (
    an_audit_event(1, action=AuditAction.AGENT_CREATED, resource="agt_1"),
    an_audit_event(2, action=AuditAction.RUN_STARTED, resource=RUN, run_id=RUN),
    an_audit_event(3, action=AuditAction.TOOL_EXECUTED, run_id=RUN, tool="mcp__files__read", actor="key_2"),
    an_audit_event(4, action=AuditAction.TOOL_FAILED, run_id=a_run_id(2), tool="mcp__files__write", actor="system"),
    an_audit_event(5, action=AuditAction.TOOL_BLOCKED, run_id=RUN, tool="mcp__files__read"),
)


@pytest.fixture
async def filled(stores: Stores) -> Stores:
    for entry in ENTRIES:
        await stores.audit.record(entry)
    return stores


@pytest.mark.requirement("C5")
async def test_an_entry_with_every_field_set_is_read_back_as_it_was(stores: Stores) -> None:
    entry = an_audit_event(
        action=AuditAction.TOOL_FAILED,
        at=after(0.000001),
        run_id=RUN,
        tool="mcp__files__read",
        server_id=SERVER,
        duration_ms=17,
        arguments_digest="sha256:00ff",
        details={"error": "tool_timeout", "nested": {"list": [1, None, "ü"]}},
    )
    await stores.audit.record(entry)
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (entry,)


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (AuditFilter(), [5, 4, 3, 2, 1]),
        (AuditFilter(action="tool.executed"), [3]),
        (AuditFilter(action="tool.*"), [5, 4, 3]),
        (AuditFilter(action="run.*"), [2]),
        (AuditFilter(action="tool"), []),
        (AuditFilter(action="to.*"), []),
        (AuditFilter(action="tool_.*"), []),
        (AuditFilter(action="%"), []),
        (AuditFilter(action="*"), []),
        (AuditFilter(actor="system"), [4]),
        (AuditFilter(actor=KEY), [5, 2, 1]),
        (AuditFilter(resource=RUN), [2]),
        (AuditFilter(run_id=RUN), [5, 3, 2]),
        (AuditFilter(tool="mcp__files__read"), [5, 3]),
        (AuditFilter(since=after(3)), [5, 4, 3]),
        (AuditFilter(until=after(3)), [2, 1]),
        (AuditFilter(since=after(2), until=after(4)), [3, 2]),
        (AuditFilter(action="tool.*", run_id=RUN, until=after(5)), [3]),
        (AuditFilter(tool="mcp__files__read", actor="system"), []),
    ],
    ids=repr,
)
async def test_a_filter_keeps_what_meets_all_its_conditions_newest_first(
    filled: Stores, wanted: AuditFilter, numbers: list[int]
) -> None:
    entries = await all_of(partial(filled.audit.page, ORG, wanted))
    assert entries == tuple(ENTRIES[number - 1] for number in numbers)


@pytest.mark.requirement("C5")
async def test_pages_follow_each_other_under_a_filter_and_do_not_shift(filled: Stores) -> None:
    wanted = AuditFilter(action="tool.*")
    first = await filled.audit.page(ORG, wanted, PageRequest(limit=2))
    await filled.audit.record(an_audit_event(6, action=AuditAction.TOOL_EXECUTED))
    second = await filled.audit.page(ORG, wanted, PageRequest(limit=2, cursor=first.next_cursor))
    assert (*first.items, *second.items) == (ENTRIES[4], ENTRIES[3], ENTRIES[2])
    assert second.next_cursor is None


@pytest.mark.requirement("C5")
async def test_entries_of_the_same_moment_are_each_listed_once(stores: Stores) -> None:
    entries = [an_audit_event(number, at=after(0)) for number in range(1, 6)]
    for entry in entries:
        await stores.audit.record(entry)
    pages = await pages_of(partial(stores.audit.page, ORG, AuditFilter()), limit=2)
    assert sorted(entry.id for page in pages for entry in page) == [entry.id for entry in entries]


@pytest.mark.requirement("C6")
async def test_another_organizations_entries_are_not_seen(filled: Stores) -> None:
    theirs = an_audit_event(9, organization_id=OTHER_ORG)
    await filled.audit.record(theirs)
    assert await all_of(partial(filled.audit.page, OTHER_ORG, AuditFilter())) == (theirs,)
    assert theirs not in await all_of(partial(filled.audit.page, ORG, AuditFilter()))


@pytest.mark.requirement("C5", "U6")
async def test_decisions_of_people_are_found_by_kind_and_time_among_other_entries(stores: Stores) -> None:
    decided = (
        an_audit_event(6, action=AuditAction.TOOL_DENIED),
        an_audit_event(7, action=AuditAction.MCP_SERVER_TOOL_REJECTED),
        an_audit_event(8, action=AuditAction.THREAD_RELEASED),
    )
    for entry in (*ENTRIES, *decided):
        await stores.audit.record(entry)

    async def found(*decisions: AuditAction, since: int | None = None) -> list[AuditAction]:
        wanted = AuditFilter(decisions=decisions, since=None if since is None else after(since))
        return [entry.action for entry in await all_of(partial(stores.audit.page, ORG, wanted))]

    assert await found(*DECISIONS) == [entry.action for entry in reversed(decided)]
    assert await found(AuditAction.THREAD_RELEASED, AuditAction.TOOL_DENIED, since=7) == [AuditAction.THREAD_RELEASED]
    pages = await pages_of(partial(stores.audit.page, ORG, AuditFilter(decisions=DECISIONS)), limit=2)
    assert [[entry.id for entry in page] for page in pages] == [[decided[2].id, decided[1].id], [decided[0].id]]
