"""The contract of the reading half of `RunStore`."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest

from application.runs.ports import RunFilter, RunOrder, RunOutcome
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditAction
from domain.ids import AgentId
from domain.runs.limits import LimitSettings
from domain.runs.run import Run, RunStatus
from domain.runs.usage import Usage
from domain.threads.message import ImageContent, TextContent
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    THREAD,
    a_message,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
    an_agent,
    an_audit_event,
    numbered,
)
from tests.contract.paging import all_of, pages_of
from tests.contract.run_changes import cancel, messages_of
from tests.contract.run_steps import finish_step, reply_step, run_number, start, start_and_claim, stored
from tests.contract.stores import Stores


@pytest.mark.requirement("A1")
async def test_a_run_with_every_field_set_is_read_back_as_it_was(run_stores: Stores) -> None:
    run = a_run(
        input=(TextContent(text="Was ist das? 🙂"), ImageContent(media_type="image/png", data="iVBORw0KGgo=")),
        limits=LimitSettings(max_turns=2, timeout_s=0.5),
        tool_allowlist=(),
        metadata={"ticket": 7, "nested": [None, {"a": 1.5}]},
        requested_by=KEY,
        created_at=after(0.123456),
    )
    started = await start(run_stores, run)
    read = await stored(run_stores, RUN)
    assert read == started.run
    assert (read.input, read.limits, read.tool_allowlist, read.metadata, read.requested_by, read.created_at) == (
        run.input,
        run.limits,
        run.tool_allowlist,
        run.metadata,
        run.requested_by,
        run.created_at,
    )


async def test_an_unknown_run_is_none_and_has_nothing(run_stores: Stores) -> None:
    assert await run_stores.runs.get(ORG, RUN) is None
    assert await messages_of(run_stores.runs, ORG, RUN) == ()
    assert await run_stores.runs.tool_calls(ORG, RUN) == ()
    assert await run_stores.runs.events(ORG, RUN, after_seq=0, limit=10) == ()


@pytest.fixture
async def several(run_stores: Stores) -> Stores:
    """Run 1 completed on the thread, run 2 queued there, run 3 in progress on another, by another
    agent."""
    other_agent = an_agent(AgentId(numbered("agt", 2)), name="writer")
    await run_stores.agents.add(other_agent, an_audit_event(2, action=AuditAction.AGENT_CREATED))
    await run_stores.threads.add(a_thread(a_thread_id(2)))
    claimed = await start_and_claim(run_stores, run_number(1))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    await start(run_stores, run_number(2))
    third = a_run(a_run_id(3), thread_id=a_thread_id(2), agent_id=other_agent.id, created_at=after(3))
    await start_and_claim(run_stores, third)
    return run_stores


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (RunFilter(), [3, 2, 1]),
        (RunFilter(thread_id=THREAD), [2, 1]),
        (RunFilter(agent_id=AGENT), [2, 1]),
        (RunFilter(status=RunStatus.COMPLETED), [1]),
        (RunFilter(status=RunStatus.FAILED), []),
        (RunFilter(thread_id=THREAD, status=RunStatus.QUEUED), [2]),
        (RunFilter(thread_id=THREAD, status=RunStatus.COMPLETED), [1]),
        (RunFilter(thread_id=THREAD, status=RunStatus.FAILED), []),
        (RunFilter(thread_id=a_thread_id(2), agent_id=AGENT), []),
        (RunFilter(since=after(2), until=after(3)), [2]),
        (RunFilter(model="nobody:none"), []),
        (RunFilter(error="timeout"), []),
        (RunFilter(started_by="key_none"), []),
    ],
    ids=repr,
)
async def test_a_filter_keeps_what_meets_all_its_conditions_newest_first(
    several: Stores, wanted: RunFilter, numbers: list[int]
) -> None:
    runs = await all_of(partial(several.runs.page, ORG, wanted))
    assert [run.id for run in runs] == [a_run_id(number) for number in numbers]
    pages = await pages_of(partial(several.runs.page, ORG, wanted), limit=1)
    assert tuple(run for page in pages for run in page) == runs


@pytest.mark.requirement("X5")
async def test_runs_are_counted_and_read_by_their_last_change(several: Stores) -> None:
    await cancel(several.runs, ORG, a_run_id(2), actor=KEY, at=after(9))
    first = await several.runs.by_change(ORG, RunFilter(), PageRequest(limit=2))
    second = await several.runs.by_change(ORG, RunFilter(), PageRequest(limit=2, cursor=first.page.next_cursor))
    found = [*first.page.items, *second.page.items]
    assert [run.changed_at for run in found] == sorted((run.changed_at for run in found), reverse=True)
    assert (found[0].id, len(found), first.total, second.total) == (a_run_id(2), 3, 3, 3)
    ended = RunFilter(statuses=frozenset({RunStatus.COMPLETED, RunStatus.CANCELLED}))
    counted = await several.runs.by_change(ORG, ended, PageRequest(limit=5))
    assert [run.id for run in counted.page.items] == [a_run_id(2), a_run_id(1)]
    late = await several.runs.by_change(ORG, RunFilter(changed_since=after(8)), PageRequest(limit=5))
    assert ([run.id for run in late.page.items], late.total) == ([a_run_id(2)], 1)


@pytest.fixture
async def figured(run_stores: Stores) -> Stores:
    """Runs 1 to 3, each on its own thread, with different figures; run 4 like run 3, and not
    begun."""
    for number, took, cost, tokens in ((1, 9.5, "0.002", 10), (2, 0.25, "0.3", 5), (3, 3.0, "0", 700)):
        thread = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread))
        claimed = await start_and_claim(
            run_stores, a_run(a_run_id(number), thread_id=thread, created_at=after(number), model=f"scripted:{number}")
        )
        usage = Usage(input_tokens=tokens, output_tokens=1, cost_usd=Decimal(cost))
        assert claimed.run.started_at is not None
        ended_at = claimed.run.started_at + timedelta(seconds=took)
        ended = replace(claimed.run, usage=usage).ended(RunStatus.COMPLETED, at=ended_at)
        await run_stores.journal.commit(claimed.lease, replace(finish_step(claimed.run), run=ended))
    thread = a_thread_id(14)
    await run_stores.threads.add(a_thread(thread))
    await start(run_stores, a_run(a_run_id(4), thread_id=thread, created_at=after(4)))
    return run_stores


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        (RunOrder.NEWEST, [4, 3, 2, 1]),
        (RunOrder.OLDEST, [1, 2, 3, 4]),
        (RunOrder.LONGEST, [1, 3, 2, 4]),
        (RunOrder.COSTLIEST, [2, 1, 4, 3]),
        (RunOrder.MOST_TOKENS, [3, 1, 2, 4]),
    ],
)
async def test_runs_are_paged_in_each_order(figured: Stores, order: RunOrder, numbers: list[int]) -> None:
    async def fetch(request: PageRequest) -> Page[Run]:
        return await figured.runs.page(ORG, RunFilter(), request, order)

    pages = await pages_of(fetch, limit=1)
    assert [run.id for page in pages for run in page] == [a_run_id(number) for number in numbers]
    ended = RunFilter(status=RunStatus.COMPLETED, until=after(4), model="scripted:2")
    found = await figured.runs.page(ORG, ended, PageRequest(limit=5), order)
    assert [run.id for run in found.items] == [a_run_id(2)]


@pytest.mark.requirement("U6")
async def test_runs_are_counted_up_to_a_bound(figured: Stores) -> None:
    runs = figured.runs
    assert await runs.count(ORG, RunFilter(), most=10) == 4
    assert await runs.count(ORG, RunFilter(), most=3) == 3
    assert await runs.count(ORG, RunFilter(status=RunStatus.COMPLETED), most=10) == 3
    assert await runs.count(ORG, RunFilter(model="scripted:2", text="time"), most=10) == 1
    assert await runs.count(OTHER_ORG, RunFilter(), most=10) == 0


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (RunFilter(text="HOW MANY"), True),
        (RunFilter(text='"quoted" 100%_'), True),
        (RunFilter(text="type"), False),
        (RunFilter(text="fall%"), False),
        (RunFilter(tool="website_content"), True),
        (RunFilter(tool="website"), False),
        (RunFilter(metadata=("ticket", "7")), True),
        (RunFilter(metadata=("ticket", "77")), False),
        (RunFilter(metadata=("team", "north & south")), True),
        (RunFilter(metadata=("north & south", "team")), False),
        (RunFilter(model="scripted:a.yaml", started_by=KEY), True),
    ],
    ids=repr,
)
async def test_runs_are_found_by_what_they_were_asked_called_and_carry(
    run_stores: Stores, wanted: RunFilter, *, is_found: bool
) -> None:
    run = a_run(
        input=(TextContent(text='How many fallen "quoted" 100%_ apples?'),),
        metadata={"ticket": 7, "team": "north & south"},
        model="scripted:a.yaml",
        requested_by=KEY,
    )
    claimed = await start_and_claim(run_stores, run)
    call = replace(a_tool_call(run_id=run.id), name="website_content")
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    found = await all_of(partial(run_stores.runs.page, ORG, wanted))
    assert [each.id for each in found] == ([run.id] if is_found else [])


async def test_runs_are_listed_as_they_stand_over_several_pages_that_do_not_shift(several: Stores) -> None:
    first = await several.runs.page(ORG, RunFilter(), PageRequest(limit=2))
    await start(several, run_number(4))
    second = await several.runs.page(ORG, RunFilter(), PageRequest(limit=2, cursor=first.next_cursor))
    listed: list[Run] = [*first.items, *second.items]
    assert listed == [await stored(several, a_run_id(number)) for number in (3, 2, 1)]
    assert second.next_cursor is None
    assert [len(page) for page in await pages_of(partial(several.runs.page, ORG, RunFilter()), limit=2)] == [2, 2]


@pytest.mark.requirement("A1")
async def test_a_runs_messages_are_its_own_only(run_stores: Stores) -> None:
    await run_stores.threads.append(ORG, a_message(text="before"))
    claimed = await start_and_claim(run_stores)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    await run_stores.threads.append(ORG, a_message(2, text="after"))
    assert [message.text for message in await messages_of(run_stores.runs, ORG, RUN)] == [
        "What time is it?",
        "Let me see.",
    ]
    outcome = await run_stores.runs.outcome(ORG, RUN)
    assert outcome == RunOutcome(
        run=await stored(run_stores, RUN), messages=await messages_of(run_stores.runs, ORG, RUN)
    )
    assert len(await all_of(partial(run_stores.threads.messages, ORG, THREAD))) == 4


async def test_the_outcome_of_a_run_of_many_turns_has_all_its_messages(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    run = claimed.run
    for _ in range(20):
        step = reply_step(run)
        await run_stores.journal.commit(claimed.lease, step)
        run = step.run

    outcome = await run_stores.runs.outcome(ORG, RUN)
    assert outcome == RunOutcome(
        run=await stored(run_stores, RUN), messages=await messages_of(run_stores.runs, ORG, RUN)
    )
    assert [message.role for message in outcome.messages] == ["user", *["assistant"] * 20]


@pytest.mark.requirement("E2")
async def test_events_are_read_from_any_seq_on_and_in_pieces(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    events = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert [event.type.value for event in events] == [
        "run.queued",
        "run.started",
        "message.completed",
        "turn.started",
        "run.completed",
    ]
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    for after_seq in range(7):
        assert await run_stores.runs.events(ORG, RUN, after_seq=after_seq, limit=2) == events[after_seq : after_seq + 2]


@pytest.mark.requirement("C6")
async def test_another_organizations_run_does_not_exist(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, a_tool_call()))
    before = await stored(run_stores, RUN)

    runs = run_stores.runs
    assert await runs.get(OTHER_ORG, RUN) is None
    assert await runs.outcome(OTHER_ORG, RUN) is None
    assert await all_of(partial(runs.page, OTHER_ORG, RunFilter())) == ()
    assert await all_of(partial(runs.page, OTHER_ORG, RunFilter(thread_id=THREAD))) == ()
    assert (await runs.page(OTHER_ORG, RunFilter(thread_id=THREAD), PageRequest(limit=1))).items == ()
    assert await messages_of(runs, OTHER_ORG, RUN) == ()
    assert await runs.tool_calls(OTHER_ORG, RUN) == ()
    assert await runs.events(OTHER_ORG, RUN, after_seq=0, limit=10) == ()
    assert await cancel(runs, OTHER_ORG, RUN, actor=KEY, at=after(1)) is None
    assert await stored(run_stores, RUN) == before
