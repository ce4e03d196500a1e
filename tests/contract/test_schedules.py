"""The contract of `ScheduleStore` and `DueSchedules`, and of `RunStore.start` with a firing."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.runs.new_run import StartedRun
from application.schedules.ports import SCHEDULES_TOPIC, DueSchedule
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.runs.events import RunEventType
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import Effort, ModelSettings
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.runs.webhook import Webhook
from domain.schedules.firing import Firing, not_fired_audit
from domain.schedules.schedule import MAX_SCHEDULES, MissedFires, Schedule, ScheduleError
from domain.secrets.secret import SecretRef
from domain.threads.message import ImageContent, TextContent
from tests.builders import (
    AGENT,
    ORG,
    OTHER_ORG,
    RUN,
    THREAD,
    a_deletion,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    after,
    an_audit_event,
)
from tests.contract.paging import all_of
from tests.contract.run_steps import claim, finish_step, reply_step
from tests.contract.stores import Stores
from tests.schedule_builders import SCHEDULE, a_firing, a_schedule, a_schedule_id, made

FULL = replace(
    a_schedule(
        timezone="Europe/Lisbon",
        input=(TextContent(text="Look."), ImageContent(media_type="image/png", url="https://example.com/a.png")),
        thread_id=THREAD,
        strategy=MultitaskStrategy.REJECT,
        limits=LimitSettings(max_turns=3, max_cost_usd=Decimal("0.25")),
        model="openai:a",
        tool_allowlist=("mcp__git__*",),
        metadata={"team": "ops", "nested": {"a": [1, None]}},
        missed=MissedFires.SKIP,
        next_fire_at=after(3_600.123456),
    ),
    model_settings=ModelSettings(effort=Effort.LOW, stop=("END",)),
    output_schema={"type": "object", "properties": {"due": {"type": ["string", "null"]}}},
    webhook=Webhook(
        url="https://example.com/hooks/T0K3N", secret=SecretRef("SIGNING"), events=(RunEventType.RUN_FAILED,)
    ),
    updated_at=after(5),
)
ERROR = ScheduleError(code="agent_disabled", detail="The agent is disabled.", at=after(1))


async def stored(stores: Stores, schedule: Schedule) -> Schedule:
    found = await stores.schedules.find(schedule.organization_id, schedule.id)
    assert found is not None
    return found


async def trail(stores: Stores) -> list[str]:
    """Actions, the newest first."""
    return [entry.action.value for entry in await all_of(partial(stores.audit.page, ORG, AuditFilter()))]


def code_of(refused: pytest.ExceptionInfo[ServiceError]) -> tuple[ErrorKind, str]:
    return refused.value.kind, refused.value.code


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "schedule",
    [a_schedule(), FULL, a_schedule(enabled=False), a_schedule(tool_allowlist=())],
    ids=["plain", "full", "paused", "nothing allowed"],
)
async def test_a_schedule_comes_back_as_it_was_stored_by_id_and_by_name(stores: Stores, schedule: Schedule) -> None:
    await stores.schedules.add(schedule, made())
    assert await stores.schedules.find(ORG, schedule.id) == schedule
    assert await stores.schedules.find(ORG, schedule.name) == schedule
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (made(),)


async def test_an_id_goes_before_a_name(stores: Stores) -> None:
    await stores.schedules.add(a_schedule(), made(1))
    await stores.schedules.add(a_schedule(a_schedule_id(2), name=SCHEDULE), made(2))
    assert await stores.schedules.find(ORG, SCHEDULE) == a_schedule()


@pytest.mark.requirement("C6", "E7")
async def test_schedules_of_another_organization_are_not_there(stores: Stores) -> None:
    await stores.schedules.add(a_schedule(), made(1))
    theirs = a_schedule(a_schedule_id(2), organization_id=OTHER_ORG)
    await stores.schedules.add(theirs, replace(made(2), organization_id=OTHER_ORG))
    assert await stores.schedules.find(OTHER_ORG, SCHEDULE) is None
    assert await stores.schedules.find(OTHER_ORG, "nightly") == theirs
    assert (await stores.schedules.page(OTHER_ORG, PageRequest())).items == (theirs,)
    assert not await stores.schedules.delete(OTHER_ORG, SCHEDULE, made(3))
    changed = replace(a_schedule(version=2), organization_id=OTHER_ORG)
    with pytest.raises(ServiceError) as refused:
        await stores.schedules.save(changed, expected_version=1, replanned=True, audit=made(4))
    assert code_of(refused) == (ErrorKind.NOT_FOUND, "schedule_not_found")
    assert await stored(stores, a_schedule()) == a_schedule()


async def test_a_name_is_given_once_to_new_and_to_renamed_ones(stores: Stores) -> None:
    await stores.schedules.add(a_schedule(), made(1))
    other = a_schedule(a_schedule_id(2), name="weekly")
    await stores.schedules.add(other, made(2))
    with pytest.raises(ServiceError) as refused:
        await stores.schedules.add(a_schedule(a_schedule_id(3)), made(3))
    assert code_of(refused) == (ErrorKind.CONFLICT, "schedule_exists")
    changed = replace(other, name="nightly", version=2)
    with pytest.raises(ServiceError) as renamed:
        await stores.schedules.save(changed, expected_version=1, replanned=False, audit=made(4))
    assert code_of(renamed) == (ErrorKind.CONFLICT, "schedule_exists")
    assert await stored(stores, other) == other
    assert len(await trail(stores)) == 2


async def test_there_is_an_end_to_how_many_an_organization_may_have(stores: Stores) -> None:
    def add(number: int) -> Awaitable[None]:
        return stores.schedules.add(a_schedule(a_schedule_id(number), name=f"s{number}"), made(number))

    await asyncio.gather(*(add(number) for number in range(1, MAX_SCHEDULES)))
    last_and_one_more = await asyncio.gather(add(MAX_SCHEDULES), add(MAX_SCHEDULES + 1), return_exceptions=True)
    (refused,) = (outcome for outcome in last_and_one_more if outcome is not None)
    assert isinstance(refused, ServiceError)
    assert (refused.kind, refused.code) == (ErrorKind.CONFLICT, "too_many_schedules")
    theirs = a_schedule(a_schedule_id(0), organization_id=OTHER_ORG)
    await stores.schedules.add(theirs, replace(made(0), organization_id=OTHER_ORG))


async def test_a_change_replaces_what_people_write_and_leaves_what_fires_wrote(run_stores: Stores) -> None:
    stores = run_stores
    await stores.schedules.add(a_schedule(), made(1))
    await stores.runs.start(replace(a_new_run(), firing=a_firing(a_schedule(), after(60))))
    fired = await stored(stores, a_schedule())
    # The one who writes has read the schedule before it fired.
    changed = replace(FULL, version=2, next_fire_at=after(7))
    await stores.schedules.save(changed, expected_version=1, replanned=False, audit=made(2))
    beside = replace(changed, last_fired_at=fired.last_fired_at, last_run_id=RUN)
    assert await stored(stores, changed) == replace(beside, next_fire_at=after(60))
    again = replace(changed, version=3, next_fire_at=after(9))
    await stores.schedules.save(again, expected_version=2, replanned=True, audit=made(3))
    assert await stored(stores, changed) == replace(beside, version=3, next_fire_at=after(9))


async def test_a_change_of_another_version_is_refused(stores: Stores) -> None:
    await stores.schedules.add(a_schedule(), made(1))
    with pytest.raises(ServiceError) as stale:
        await stores.schedules.save(a_schedule(version=3), expected_version=2, replanned=True, audit=made(2))
    assert code_of(stale) == (ErrorKind.PRECONDITION, "version_conflict")
    gone = a_schedule(a_schedule_id(9), version=2)
    with pytest.raises(ServiceError) as missing:
        await stores.schedules.save(gone, expected_version=1, replanned=True, audit=made(3))
    assert code_of(missing) == (ErrorKind.NOT_FOUND, "schedule_not_found")
    assert len(await trail(stores)) == 1


async def test_schedules_are_listed_newest_first(stores: Stores) -> None:
    schedules = [a_schedule(a_schedule_id(n), name=f"s{n}", created_at=after(n)) for n in range(1, 6)]
    for number, schedule in enumerate(schedules, start=1):
        await stores.schedules.add(schedule, made(number))
    first = await stores.schedules.page(ORG, PageRequest(limit=3))
    rest = await stores.schedules.page(ORG, PageRequest(limit=3, cursor=first.next_cursor))
    assert [*first.items, *rest.items] == schedules[::-1]
    assert rest.next_cursor is None


async def test_a_deleted_schedule_is_gone_and_its_name_free(stores: Stores) -> None:
    await stores.schedules.add(a_schedule(), made(1))
    deletion = an_audit_event(2, action=AuditAction.SCHEDULE_DELETED)
    assert await stores.schedules.delete(ORG, SCHEDULE, deletion)
    assert not await stores.schedules.delete(ORG, SCHEDULE, an_audit_event(3))
    assert await stores.schedules.find(ORG, SCHEDULE) is None
    assert await trail(stores) == ["schedule.deleted", "schedule.created"]
    await stores.schedules.add(a_schedule(a_schedule_id(2)), made(4))


@pytest.mark.requirement("E7")
async def test_what_is_due_comes_by_its_time_from_every_organization_and_nothing_paused_does(stores: Stores) -> None:
    assert await stores.due_schedules.next_due(after=after(-1)) is None
    theirs = a_schedule(a_schedule_id(2), organization_id=OTHER_ORG, next_fire_at=after(10))
    await stores.schedules.add(a_schedule(next_fire_at=after(20)), made(1))
    await stores.schedules.add(theirs, replace(made(2), organization_id=OTHER_ORG))
    await stores.schedules.add(a_schedule(a_schedule_id(3), name="paused", enabled=False), made(3))
    await stores.schedules.add(a_schedule(a_schedule_id(4), name="later", next_fire_at=after(21)), made(4))
    expected = (
        DueSchedule(organization_id=OTHER_ORG, schedule_id=a_schedule_id(2)),
        DueSchedule(organization_id=ORG, schedule_id=SCHEDULE),
    )
    assert await stores.due_schedules.due(at=after(20), limit=10) == expected
    assert await stores.due_schedules.due(at=after(20), limit=1) == expected[:1]
    assert await stores.due_schedules.due(at=after(9), limit=10) == ()
    assert await stores.due_schedules.next_due(after=after(9)) == after(10)
    assert await stores.due_schedules.next_due(after=after(20)) == after(21)
    assert await stores.due_schedules.next_due(after=after(21)) is None


async def test_adding_and_changing_wakes_who_waits_for_the_next_fire(stores: Stores) -> None:
    async with stores.wakeups.subscribe(SCHEDULES_TOPIC) as woken:
        await stores.schedules.add(a_schedule(), made(1))
        assert await woken.wait(60)
        await stores.schedules.save(a_schedule(version=2), expected_version=1, replanned=True, audit=made(2))
        assert await woken.wait(60)


@pytest.mark.requirement("E7")
async def test_a_fire_stores_its_run_moves_the_schedule_on_and_forgets_the_last_error(run_stores: Stores) -> None:
    stores = run_stores
    await stores.schedules.add(a_schedule(), made(1))
    first = a_firing(a_schedule(), after(60))
    assert await stores.due_schedules.pass_over(a_schedule(), first, ERROR, not_fired_audit(a_schedule(), first, ERROR))
    passed = await stored(stores, a_schedule())
    assert passed == replace(a_schedule(), next_fire_at=after(60), last_error=ERROR)

    run = a_run(requested_by=passed.actor, created_at=after(61))
    started = await stores.runs.start(replace(a_new_run(run), firing=a_firing(passed, after(120))))
    assert started.created
    assert await stored(stores, passed) == replace(
        a_schedule(), next_fire_at=after(120), last_fired_at=after(61), last_run_id=RUN
    )
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter()))
    fired, not_fired, _ = sorted(entries, key=lambda entry: entry.at, reverse=True)
    assert (fired.action, fired.actor, fired.resource, fired.run_id) == (
        AuditAction.SCHEDULE_FIRED,
        f"schedule:{SCHEDULE}",
        SCHEDULE,
        RUN,
    )
    assert fired.details == {"due_at": after(60).isoformat(), "agent_id": AGENT, "thread_id": THREAD}
    assert (not_fired.action, not_fired.actor) == (AuditAction.SCHEDULE_NOT_FIRED, f"schedule:{SCHEDULE}")
    assert not_fired.details["error"] == "agent_disabled"


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("moved", ["fired", "changed", "paused", "deleted", "another organization's"])
async def test_a_fire_that_comes_too_late_stores_nothing(run_stores: Stores, moved: str) -> None:
    stores = run_stores
    organization_id = OTHER_ORG if moved == "another organization's" else ORG
    await stores.schedules.add(
        a_schedule(organization_id=organization_id), replace(made(1), organization_id=organization_id)
    )
    firing = a_firing(a_schedule(), after(60))
    match moved:
        case "fired":
            await stores.runs.start(replace(a_new_run(), firing=firing))
        case "changed":
            await stores.schedules.save(a_schedule(version=2), expected_version=1, replanned=False, audit=made(2))
        case "paused":
            paused = a_schedule(enabled=False, version=2)
            await stores.schedules.save(paused, expected_version=1, replanned=True, audit=made(2))
        case "deleted":
            await stores.schedules.delete(ORG, SCHEDULE, made(2))
        case _:
            pass
    before = await trail(stores)
    thread = a_thread(a_thread_id(7))
    late = a_new_run(a_run(a_run_id(7), thread_id=thread.id), new_thread=thread)
    with pytest.raises(ServiceError) as refused:
        await stores.runs.start(replace(late, firing=firing))
    assert code_of(refused) == (ErrorKind.CONFLICT, "schedule_moved")
    assert await stores.runs.get(ORG, a_run_id(7)) is None
    assert await stores.threads.get(ORG, thread.id) is None
    assert not await stores.due_schedules.pass_over(a_schedule(), firing, ERROR, made(9))
    assert await trail(stores) == before


async def test_a_fire_whose_thread_is_busy_moves_nothing(run_stores: Stores) -> None:
    stores = run_stores
    await stores.runs.start(a_new_run())
    await stores.schedules.add(a_schedule(), made(1))
    refused_run = a_new_run(a_run(a_run_id(2)), strategy=MultitaskStrategy.REJECT)
    with pytest.raises(ServiceError) as refused:
        await stores.runs.start(replace(refused_run, firing=a_firing(a_schedule(), after(60))))
    assert code_of(refused) == (ErrorKind.CONFLICT, "thread_busy")
    assert await stored(stores, a_schedule()) == a_schedule()


@pytest.mark.requirement("E7")
async def test_of_many_who_fire_at_once_one_begins_a_run(run_stores: Stores) -> None:
    stores = run_stores
    await stores.schedules.add(a_schedule(), made(1))

    def fire(number: int) -> Awaitable[StartedRun]:
        thread = a_thread(a_thread_id(number))
        new = a_new_run(a_run(a_run_id(number), thread_id=thread.id), new_thread=thread)
        return stores.runs.start(replace(new, firing=a_firing(a_schedule(), after(60))))

    outcomes = await asyncio.gather(*(fire(number) for number in range(10, 22)), return_exceptions=True)
    (started,) = (outcome for outcome in outcomes if isinstance(outcome, StartedRun))
    refused = [outcome.code for outcome in outcomes if isinstance(outcome, ServiceError)]
    assert refused == ["schedule_moved"] * 11
    fired = await stored(stores, a_schedule())
    assert fired.last_run_id == started.run.id
    assert (await trail(stores)).count("schedule.fired") == 1


async def test_the_last_time_of_all_leaves_none_to_come(run_stores: Stores) -> None:
    stores = run_stores
    await stores.schedules.add(a_schedule(), made(1))
    await stores.runs.start(
        replace(a_new_run(), firing=Firing(schedule_id=SCHEDULE, version=1, due_at=after(0), next_fire_at=None))
    )
    assert (await stored(stores, a_schedule())).next_fire_at is None
    assert await stores.due_schedules.due(at=after(10**6), limit=1) == ()


async def test_of_a_run_that_is_deleted_with_its_thread_the_schedule_names_nothing(run_stores: Stores) -> None:
    stores = run_stores
    await stores.schedules.add(a_schedule(thread_id=THREAD), made(1))
    await stores.runs.start(replace(a_new_run(), firing=a_firing(a_schedule(), after(60))))
    claimed = await claim(stores, RUN)
    reply = reply_step(claimed.run, text="Done.")
    await stores.journal.commit(claimed.lease, reply)
    await stores.journal.commit(claimed.lease, finish_step(reply.run))
    run = await stores.runs.get(ORG, RUN)
    assert run is not None
    assert run.status is RunStatus.COMPLETED
    assert await stores.threads.delete(ORG, THREAD, a_deletion())
    left = await stored(stores, a_schedule())
    assert (left.last_run_id, left.thread_id) == (None, THREAD)
