"""Schedules that begin runs: when, as whom, how often, and what becomes of those that cannot."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture

from application.runs.new_run import NewRun, StartedRun
from application.runs.ports import RunStore
from application.schedules.fire_schedules import REREAD_S
from application.schedules.ports import CronTimes
from application.system.wakeups import Subscription
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import AgentId, OrganizationId, RunId
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.runs.webhook import Webhook
from domain.schedules.schedule import MissedFires, Schedule
from infrastructure.runtime.cron import CronsimTimes
from tests.builders import ORG, THREAD, a_thread_id
from tests.doubles.surroundings import START
from tests.schedule_builders import SCHEDULE, a_schedule, a_schedule_id, made
from tests.unit.application.actors import a_principal
from tests.unit.application.runs.doubles import SubmittedRuns, says
from tests.unit.application.runs.harness import ADMIN
from tests.unit.application.runs.invariants import assert_consistent
from tests.unit.application.schedules.schedule_harness import ScheduleHarness, paused

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DUE = START + MINUTE
HOOK = Webhook(url="https://example.com/hook")


@pytest.mark.requirement("E7")
async def test_a_run_begins_when_its_schedule_is_due_and_neither_before_nor_again() -> None:
    harness = ScheduleHarness()
    await harness.add()
    await harness.at(DUE - timedelta(microseconds=1))
    assert harness.begun == []
    for _ in range(2):
        await harness.at(DUE)
    (run,) = harness.begun
    assert (run.status, run.created_at, harness.queue.run_ids) == (RunStatus.QUEUED, DUE, [run.id])
    assert harness.schedule.next_fire_at == DUE + HOUR
    assert (harness.schedule.last_fired_at, harness.schedule.last_run_id) == (DUE, run.id)
    await harness.at(DUE + HOUR)
    assert [run.created_at for run in harness.begun] == [DUE, DUE + HOUR]
    assert len({run.thread_id for run in harness.begun}) == 2


@pytest.mark.requirement("C5", "E7")
async def test_a_scheduled_run_says_which_schedule_began_it_and_acts_as_that_and_not_as_a_key() -> None:
    harness = ScheduleHarness([says()])
    await harness.add(
        a_schedule(
            cron="1 * * * *",
            next_fire_at=DUE,
            thread_id=THREAD,
            limits=LimitSettings(max_turns=2, max_cost_usd=Decimal("0.5")),
            tool_allowlist=(),
            metadata={"team": "ops"},
            webhook=HOOK,
        )
    )
    del harness.state.keys[ADMIN.key_id]
    await harness.at(DUE)
    (run,) = harness.begun
    assert run.metadata == {
        "team": "ops",
        "schedule": {"id": SCHEDULE, "name": "nightly", "due_at": DUE.isoformat()},
    }
    assert (run.thread_id, run.limits.max_turns, run.tool_allowlist, run.webhook) == (THREAD, 2, (), HOOK.note)
    await harness.worker.execute(run.id)
    actor = f"schedule:{SCHEDULE}"
    assert run.requested_by == actor
    assert [(entry.action.value, entry.actor) for entry in harness.entries[:2]] == [
        ("schedule.fired", actor),
        ("run.started", actor),
    ]
    assert harness.entries[0].run_id == run.id
    assert_consistent(harness, run.id)


async def test_a_runner_does_not_stop_what_a_schedule_began() -> None:
    harness = ScheduleHarness()
    await harness.add()
    await harness.at(DUE)
    (run,) = harness.begun
    with pytest.raises(ServiceError) as refused:
        await harness.cancel(run.id, principal=a_principal(Role.RUNNER))
    assert refused.value.kind is ErrorKind.FORBIDDEN
    assert (await harness.cancel(run.id, principal=a_principal(Role.OPERATOR))).status is RunStatus.CANCELLED


@pytest.mark.requirement("E7")
async def test_of_several_processes_one_begins_the_run() -> None:
    harness = ScheduleHarness()
    await harness.add()
    harness.clock.advance(60)
    await asyncio.gather(*(harness.firing().execute() for _ in range(5)))
    assert len(harness.begun) == 1
    assert [entry.action.value for entry in harness.entries] == ["schedule.fired"]


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("missed", list(MissedFires))
@pytest.mark.parametrize("late_s", [0, 59, 60, 5 * 3_600 + 7])
async def test_what_was_missed_goes_by_the_policy_and_is_never_run_twice(missed: MissedFires, late_s: int) -> None:
    harness = ScheduleHarness()
    await harness.add(a_schedule(cron="1 * * * *", next_fire_at=DUE, missed=missed))
    found_at = DUE + timedelta(seconds=late_s)
    await harness.at(found_at)
    skipped = missed is MissedFires.SKIP and late_s >= 60
    assert len(harness.begun) == (0 if skipped else 1)
    hours = late_s // 3_600 + 1
    assert harness.schedule.next_fire_at == DUE + hours * HOUR
    error = harness.schedule.last_error
    assert (error and error.code) == ("fire_missed" if skipped else None)
    (entry,) = harness.entries
    assert entry.action.value == ("schedule.not_fired" if skipped else "schedule.fired")
    assert entry.details["due_at"] == DUE.isoformat()
    await harness.at(DUE + hours * HOUR)
    assert len(harness.begun) == (1 if skipped else 2)
    assert harness.schedule.last_error is None


@pytest.mark.requirement("C7", "E7")
async def test_a_disabled_agent_begins_nothing_and_its_schedule_goes_on_once_it_is_enabled() -> None:
    harness = ScheduleHarness()
    await harness.add()
    harness.change_agent(enabled=False)
    await harness.at(DUE)
    assert harness.begun == []
    error = harness.schedule.last_error
    assert error is not None
    assert (error.code, error.at) == ("agent_disabled", DUE)
    assert harness.agent.config.name in error.detail
    assert harness.schedule.enabled
    assert [(entry.action.value, entry.details["error"]) for entry in harness.entries] == [
        ("schedule.not_fired", "agent_disabled")
    ]
    harness.change_agent(enabled=True)
    await harness.at(DUE + HOUR)
    assert len(harness.begun) == 1
    assert harness.schedule.last_error is None


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        ("agent", "agent_not_found"),
        ("thread", "thread_not_found"),
        ("model", "model_not_allowed"),
        ("provider", "model_unavailable"),
        ("busy", "thread_busy"),
    ],
)
async def test_what_cannot_begin_a_run_is_said_and_holds_up_no_other_schedule(spoil: str, code: str) -> None:
    harness = ScheduleHarness()
    schedule = a_schedule(cron="1 * * * *", next_fire_at=DUE, strategy=MultitaskStrategy.REJECT)
    match spoil:
        case "agent":
            schedule = replace(schedule, agent_id=AgentId("agt_gone"))
        case "thread":
            schedule = replace(schedule, thread_id=a_thread_id(99))
        case "model":
            schedule = replace(schedule, model="other:one")
        case "provider":
            harness.change_organization(models=("nowhere:one",))
            schedule = replace(schedule, model="nowhere:one")
        case _:
            schedule = replace(schedule, thread_id=THREAD)
            await harness.start()
    before = len(harness.begun)
    await harness.add(schedule)
    other = a_schedule(a_schedule_id(2), name="fine", cron="1 * * * *", next_fire_at=DUE)
    await harness.schedules.add(other, made(2))
    await harness.at(DUE)
    assert len(harness.begun) == before + 1
    assert harness.state.schedules[other.id].last_run_id == harness.begun[-1].id
    assert harness.schedule.last_error is not None
    assert (harness.schedule.last_error.code, harness.schedule.next_fire_at) == (code, DUE + HOUR)


class Unready:
    """A `CronTimes` that is not as it was when the schedule was saved."""

    def __init__(self, trouble: Exception | None) -> None:
        self._trouble = trouble

    def faults(self, cron: str, timezone: str) -> tuple[()]:
        return ()

    def next_after(self, cron: str, timezone: str, after: datetime) -> datetime | None:
        if self._trouble is not None:
            raise self._trouble
        return None


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (ServiceError("schedule_invalid", ErrorKind.INVALID, "There is no such zone any more."), "schedule_invalid"),
        (RuntimeError("secret words"), "internal_error"),
    ],
)
async def test_a_schedule_whose_next_time_cannot_be_told_stops_with_a_reason(trouble: Exception, code: str) -> None:
    harness = ScheduleHarness()
    await harness.add()
    harness.fire = harness.firing(times=Unready(trouble))
    await harness.at(DUE)
    error = harness.schedule.last_error
    assert error is not None
    assert (error.code, harness.schedule.next_fire_at, harness.schedule.enabled) == (code, None, True)
    assert "secret words" not in error.detail
    assert harness.begun == []


async def test_the_last_of_all_times_still_begins_its_run() -> None:
    harness = ScheduleHarness()
    await harness.add()
    harness.fire = harness.firing(times=Unready(None))
    assert await harness.at(DUE) == REREAD_S
    assert (len(harness.begun), harness.schedule.next_fire_at) == (1, None)


@pytest.mark.requirement("E7")
async def test_a_database_that_is_away_leaves_the_fire_due(mocker: MockerFixture) -> None:
    harness = ScheduleHarness()
    await harness.add()
    away = mocker.create_autospec(RunStore, instance=True)
    away.start.side_effect = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away.")
    harness.fire = harness.firing(runs=away)
    assert 0 < await harness.at(DUE) < REREAD_S
    assert (harness.schedule.next_fire_at, harness.schedule.last_error, harness.entries) == (DUE, None, [])
    harness.fire = harness.firing()
    await harness.at(DUE + timedelta(seconds=5))
    assert len(harness.begun) == 1


class ChangedMeanwhile:
    """A `RunStore` before whose first start somebody pauses the schedule."""

    def __init__(self, harness: ScheduleHarness) -> None:
        self._harness = harness

    async def start(self, new: NewRun) -> StartedRun:
        changed = paused(self._harness.schedule)
        await self._harness.schedules.save(changed, expected_version=1, replanned=True, audit=made(2))
        return await self._harness.runs.start(new)


async def test_a_schedule_that_is_paused_while_it_fires_begins_nothing(mocker: MockerFixture) -> None:
    harness = ScheduleHarness()
    await harness.add()
    store = mocker.create_autospec(RunStore, instance=True)
    store.start.side_effect = ChangedMeanwhile(harness).start
    harness.fire = harness.firing(runs=store)
    await harness.at(DUE)
    assert (harness.begun, harness.schedule.enabled, harness.schedule.last_error) == ([], False, None)


@pytest.mark.requirement("E7")
async def test_more_than_a_batch_is_seen_to_without_rest_and_a_stubborn_one_keeps_none_from_firing() -> None:
    harness = ScheduleHarness()
    for number in range(1, 251):
        agent = "agt_gone" if number % 2 else harness.agent.id
        schedule = a_schedule(a_schedule_id(number), name=f"s{number}", cron="1 * * * *", next_fire_at=DUE)
        await harness.schedules.add(replace(schedule, agent_id=AgentId(agent)), made(number))
    waits = [await harness.at(DUE) for _ in range(3)]
    assert waits[:2] == [0.0, 0.0]
    assert waits[2] > 0
    assert len(harness.begun) == 125


class RungRuns(SubmittedRuns):
    """Tells when a run was rung for."""

    def __init__(self) -> None:
        super().__init__()
        self.bell = asyncio.Event()

    async def submit(self, *run_ids: RunId) -> None:
        await super().submit(*run_ids)
        self.bell.set()


class WatchedSleep:
    """Wake-ups of a harness whose clock goes on by as long as is slept, and a bound on how
    often."""

    def __init__(self, harness: ScheduleHarness, *, naps: int) -> None:
        self._harness = harness
        self._left = naps
        self.slept: list[float] = []
        self.enough = asyncio.Event()

    @asynccontextmanager
    async def subscribe(self, *topics: str) -> AsyncIterator[Subscription]:
        yield self

    def wake(self, *topics: str) -> None:
        """Nobody wakes."""

    async def wait(self, timeout_s: float) -> bool:
        self.slept.append(timeout_s)
        self._left -= 1
        if not self._left:
            self.enough.set()
            await asyncio.Event().wait()
        self._harness.clock.advance(timeout_s)
        return False


async def test_schedules_that_cannot_be_read_keep_no_other_from_firing_however_many_they_are(
    mocker: MockerFixture,
) -> None:
    harness = ScheduleHarness()
    broken = [a_schedule_id(number) for number in range(100, 350)]
    for schedule_id in broken:
        harness.state.schedules[schedule_id] = a_schedule(id=schedule_id, name=schedule_id, next_fire_at=DUE - MINUTE)
    await harness.add()
    find = harness.schedules.find

    async def read(organization_id: OrganizationId, schedule_id: str) -> Schedule | None:
        if schedule_id in broken:
            raise ValueError("this row is damaged")
        return await find(organization_id, schedule_id)

    mocker.patch.object(harness.schedules, "find", side_effect=read)
    passes = 1
    while await harness.at(DUE) == 0:
        passes += 1
    assert [run.created_at for run in harness.begun] == [DUE]
    assert passes <= 4
    assert 0 < await harness.at(DUE) < REREAD_S


@pytest.mark.requirement("E7")
async def test_the_keeper_sleeps_until_the_next_fire_and_looks_now_and_then_in_between() -> None:
    harness = ScheduleHarness()
    await harness.add(a_schedule(cron="1 * * * *", next_fire_at=START + timedelta(seconds=70)))
    sleep = WatchedSleep(harness, naps=5)
    harness.wakeups = sleep  # type: ignore[assignment]  # the port, not the class
    keeping = asyncio.create_task(harness.firing().keep())
    try:
        async with asyncio.timeout(5):
            await sleep.enough.wait()
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))
    assert sleep.slept == [REREAD_S, REREAD_S, 10.0, REREAD_S, REREAD_S]
    assert [run.created_at for run in harness.begun] == [START + timedelta(seconds=70)]


async def test_the_keeper_wakes_for_a_schedule_that_is_added() -> None:
    harness = ScheduleHarness()
    rung = harness.queue = RungRuns()
    keeping = asyncio.create_task(harness.firing().keep())
    try:
        async with asyncio.timeout(5):
            await asyncio.sleep(0)  # it looks, and finds nothing
            await harness.add(a_schedule(cron="1 * * * *", next_fire_at=START))
            await rung.bell.wait()
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))
    assert harness.schedule.next_fire_at == DUE


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("cron", "first", "days"),
    [
        # Put forward on 29 March at 02:00, back on 25 October at 03:00.
        ("30 2 * * *", datetime(2026, 3, 27, 1, 30, tzinfo=UTC), 5),
        ("30 2 * * *", datetime(2026, 10, 23, 0, 30, tzinfo=UTC), 5),
    ],
)
async def test_a_nightly_run_happens_once_every_night_also_when_clocks_are_changed(
    cron: str, first: datetime, days: int
) -> None:
    harness = ScheduleHarness()
    harness.clock.advance((first - START).total_seconds() - 60)
    await harness.add(a_schedule(cron=cron, timezone="Europe/Berlin", next_fire_at=first))
    for minute in range(0, days * 24 * 60 - 120, 5):
        await harness.at(max(harness.clock.now(), first + minute * MINUTE))
    assert len(harness.begun) == days
    times: CronTimes = CronsimTimes()
    assert harness.schedule.next_fire_at == times.next_after(cron, "Europe/Berlin", harness.clock.now())
    assert {run.organization_id for run in harness.begun} == {ORG}
