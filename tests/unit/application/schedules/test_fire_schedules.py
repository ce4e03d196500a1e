"""FireSchedules: what it asks of its ports for a fire, and what a failure of each leaves.

With the real `StartRun`: test_firing_schedules.py.
"""

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.ports import UserAccess
from application.runs.new_run import StartedRun
from application.runs.start_run import StartRun
from application.schedules.fire_schedules import REREAD_S, FireSchedules
from application.schedules.ports import CronTimes, DueSchedule, DueSchedules, ScheduleStore
from application.system.wakeups import Wakeups
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.role import Role
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import Effort, ModelSettings
from domain.schedules.firing import Firing, schedule_moved
from domain.schedules.schedule import MissedFires, Schedule
from tests.builders import ORG, START, THREAD, a_run, after
from tests.doubles.surroundings import FixedClock
from tests.people_builders import USER, a_user
from tests.refusals import refused, storage_away
from tests.schedule_builders import SCHEDULE, a_firing, a_schedule

NEXT = START + timedelta(hours=1)
STORED = replace(
    a_schedule(
        thread_id=THREAD,
        limits=LimitSettings(max_turns=2),
        model="scripted:other",
        tool_allowlist=(),
        metadata={"team": "ops"},
    ),
    model_settings=ModelSettings(effort=Effort.LOW),
    output_schema={"type": "object"},
)
_OF_RUNS = (
    "input",
    "thread_id",
    "strategy",
    "lane",
    "limits",
    "model_settings",
    "output_schema",
    "model",
    "tool_allowlist",
    "webhook",
)
FIRING = a_firing(STORED, NEXT)
RETRY_S = 5.0


class Ports:
    """One schedule that is due now, and then in an hour; each start begins a run."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.due: MockType = mocker.create_autospec(DueSchedules, instance=True)
        self.due.due.return_value = (DueSchedule(organization_id=ORG, schedule_id=SCHEDULE),)
        self.due.next_due.return_value = None
        self.due.pass_over.return_value = True
        self.schedules: MockType = mocker.create_autospec(ScheduleStore, instance=True)
        self.schedules.find.return_value = STORED
        self.start_run: MockType = mocker.create_autospec(StartRun, instance=True)
        self.start_run.execute.return_value = StartedRun(run=a_run(), created=True)
        self.times: MockType = mocker.create_autospec(CronTimes, instance=True)
        self.times.next_after.return_value = NEXT
        self.user_access: MockType = mocker.create_autospec(UserAccess, instance=True)
        self.clock = FixedClock()
        self.firing = FireSchedules(
            due=self.due,
            schedules=self.schedules,
            start_run=self.start_run,
            times=self.times,
            wakeups=mocker.create_autospec(Wakeups, instance=True),
            user_access=self.user_access,
            clock=self.clock,
        )

    def passed_over(self) -> tuple[Schedule, Firing, str, str]:
        """The schedule, its fire, the code that is stored, and the one that is audited."""
        schedule, firing, error, entry = self.due.pass_over.await_args.args
        return schedule, firing, error.code, entry.details["error"]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("E7")
async def test_a_due_schedule_starts_one_run_that_moves_it_on_in_the_same_transaction(ports: Ports) -> None:
    await ports.firing.execute()

    [command] = ports.start_run.execute.await_args.args
    assert command.firing == Firing(schedule_id=SCHEDULE, version=1, due_at=START, next_fire_at=NEXT)
    ports.due.pass_over.assert_not_awaited()


@pytest.mark.requirement("C5", "E7")
async def test_the_run_acts_as_its_schedule_with_the_role_runner_and_names_it_in_its_metadata(ports: Ports) -> None:
    await ports.firing.execute()

    [command] = ports.start_run.execute.await_args.args
    principal = command.principal
    assert (principal.organization_id, principal.key_id, principal.role) == (ORG, f"schedule:{SCHEDULE}", Role.OPERATOR)
    assert command.metadata == {
        "team": "ops",
        "schedule": {"id": SCHEDULE, "name": "nightly", "due_at": START.isoformat()},
    }


@pytest.mark.requirement("E7", "H3")
async def test_the_run_has_what_the_schedule_says(ports: Ports) -> None:
    await ports.firing.execute()

    [command] = ports.start_run.execute.await_args.args
    for name in _OF_RUNS:
        assert getattr(command, name) == getattr(STORED, name), name
    assert command.agent == STORED.agent_id


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "found",
    [None, a_schedule(enabled=False), a_schedule(next_fire_at=after(1))],
    ids=["deleted", "paused", "fired by another process"],
)
async def test_a_schedule_that_is_not_due_any_more_starts_nothing(ports: Ports, found: Schedule | None) -> None:
    ports.schedules.find.return_value = found

    assert await ports.firing.execute() == REREAD_S

    ports.start_run.execute.assert_not_awaited()
    ports.due.pass_over.assert_not_awaited()


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(("missed", "starts"), [(MissedFires.RUN_ONCE, 1), (MissedFires.SKIP, 0)])
async def test_a_fire_that_was_missed_by_a_minute_follows_the_policy_of_its_schedule(
    ports: Ports, missed: MissedFires, starts: int
) -> None:
    ports.schedules.find.return_value = stored = a_schedule(missed=missed)
    ports.clock.advance(60)

    await ports.firing.execute()

    assert ports.start_run.execute.await_count == starts
    if not starts:
        assert ports.passed_over() == (stored, a_firing(stored, NEXT), "fire_missed", "fire_missed")


@pytest.mark.requirement("E7")
async def test_a_fire_that_cannot_begin_a_run_is_recorded_and_the_schedule_moves_on(ports: Ports) -> None:
    ports.start_run.execute.side_effect = conflict("agent_disabled", "The agent is disabled.")

    assert await ports.firing.execute() == REREAD_S

    assert ports.passed_over() == (STORED, FIRING, "agent_disabled", "agent_disabled")


@pytest.mark.requirement("E7")
async def test_an_unexpected_failure_is_recorded_without_its_text(ports: Ports) -> None:
    ports.start_run.execute.side_effect = RuntimeError("secret words")

    await ports.firing.execute()

    assert ports.passed_over() == (STORED, FIRING, "internal_error", "internal_error")
    assert "secret words" not in repr(ports.due.pass_over.await_args)


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("failing", ["schedules.find", "start_run.execute", "due.pass_over"])
async def test_a_database_that_is_away_leaves_the_fire_due_and_it_is_soon_tried_again(
    ports: Ports, failing: str
) -> None:
    port, method = failing.split(".")
    ports.start_run.execute.side_effect = conflict("agent_disabled", "The agent is disabled.")
    getattr(getattr(ports, port), method).side_effect = storage_away()

    assert await ports.firing.execute() == RETRY_S

    if failing != "due.pass_over":
        ports.due.pass_over.assert_not_awaited()


@pytest.mark.requirement("E7")
async def test_a_schedule_that_moved_on_while_its_run_was_stored_is_not_passed_over(ports: Ports) -> None:
    ports.start_run.execute.side_effect = schedule_moved(SCHEDULE)

    assert await ports.firing.execute() == RETRY_S

    ports.due.pass_over.assert_not_awaited()


@pytest.mark.requirement("E7")
async def test_an_expression_without_a_readable_next_time_starts_nothing_and_stops_the_schedule(ports: Ports) -> None:
    ports.times.next_after.side_effect = ServiceError("schedule_invalid", ErrorKind.INVALID, "There is no such zone.")

    await ports.firing.execute()

    ports.start_run.execute.assert_not_awaited()
    assert ports.passed_over() == (STORED, a_firing(STORED, None), "schedule_invalid", "schedule_invalid")


@pytest.mark.parametrize(("next_s", "wait_s"), [(10, 10.0), (3600, REREAD_S)])
async def test_the_next_look_comes_with_the_next_fire_and_within_half_a_minute(
    ports: Ports, next_s: float, wait_s: float
) -> None:
    ports.due.due.return_value = ()
    ports.due.next_due.return_value = after(next_s)

    assert await ports.firing.execute() == wait_s


async def test_schedules_that_cannot_be_looked_for_start_nothing(ports: Ports) -> None:
    ports.due.due.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.firing.execute()

    ports.start_run.execute.assert_not_awaited()


OF_PERSON = replace(STORED, person_id=USER)


@pytest.mark.requirement("P3", "E7")
async def test_a_schedule_with_the_account_of_a_person_starts_its_runs_as_them(ports: Ports) -> None:
    ports.schedules.find.return_value = OF_PERSON
    ports.user_access.admitted.return_value = a_user()
    await ports.firing.execute()

    [command] = ports.start_run.execute.await_args.args
    assert command.principal.key_id == USER
    ports.user_access.admitted.assert_awaited_once_with(ORG, USER)


@pytest.mark.requirement("P3", "E7")
async def test_nothing_starts_as_a_person_who_has_no_access_any_more(ports: Ports) -> None:
    ports.schedules.find.return_value = OF_PERSON
    ports.user_access.admitted.return_value = None
    await ports.firing.execute()

    assert ports.passed_over()[2:] == ("person_refused", "person_refused")
    ports.start_run.execute.assert_not_awaited()
