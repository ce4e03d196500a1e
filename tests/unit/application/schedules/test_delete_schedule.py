"""DeleteSchedule: who may delete a schedule, and that the runs it began stay."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.schedules.delete_schedule import DeleteSchedule, DeleteScheduleCommand
from application.schedules.ports import ScheduleStore
from application.system.wakeups import Wakeups
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import RUN, a_run
from tests.doubles.schedules import InMemoryScheduleStore
from tests.doubles.state import InMemoryState, StoredRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.schedule_builders import SCHEDULE, a_schedule
from tests.unit.application.actors import a_principal, a_stranger


@pytest.fixture
def state() -> InMemoryState:
    """Tables with the schedule `nightly` and a run."""
    state = InMemoryState()
    state.schedules[SCHEDULE] = a_schedule()
    state.runs[RUN] = StoredRun(run=a_run())
    return state


@pytest.fixture
def wakeups(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(Wakeups, instance=True)


async def delete(schedules: ScheduleStore, principal: Principal, schedule: str = "nightly") -> None:
    deleting = DeleteSchedule(schedules=schedules, clock=FixedClock(), ids=SequentialIds())
    await deleting.execute(DeleteScheduleCommand(principal=principal, schedule=schedule))


@pytest.mark.requirement("C5", "E7")
@pytest.mark.parametrize("schedule", [SCHEDULE, "nightly"], ids=["id", "name"])
async def test_an_admin_deletes_a_schedule_which_is_audited(
    state: InMemoryState, wakeups: MockType, schedule: str
) -> None:
    await delete(InMemoryScheduleStore(state, wakeups), a_principal(), schedule)

    assert not state.schedules
    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.SCHEDULE_DELETED, "key_admin", SCHEDULE)
    assert entry.details == {"name": "nightly", "version": 1}


@pytest.mark.requirement("E7")
async def test_runs_that_the_schedule_began_stay_as_they_are(state: InMemoryState, wakeups: MockType) -> None:
    await delete(InMemoryScheduleStore(state, wakeups), a_principal())

    assert state.runs[RUN].run == a_run()


async def test_an_unknown_schedule_is_not_found(state: InMemoryState, wakeups: MockType) -> None:
    with refused("schedule_not_found"):
        await delete(InMemoryScheduleStore(state, wakeups), a_principal(), "other")

    assert not state.audit


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("schedule", [SCHEDULE, "nightly"], ids=["id", "name"])
async def test_a_schedule_of_another_organization_is_not_found_and_stays(
    state: InMemoryState, wakeups: MockType, schedule: str
) -> None:
    with refused("schedule_not_found"):
        await delete(InMemoryScheduleStore(state, wakeups), a_stranger(), schedule)

    assert SCHEDULE in state.schedules


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_deletes_schedules(mocker: MockerFixture, role: Role) -> None:
    schedules = mocker.create_autospec(ScheduleStore, instance=True)

    with refused("role_insufficient"):
        await delete(schedules, a_principal(role))

    schedules.find.assert_not_awaited()
    schedules.delete.assert_not_awaited()


async def test_a_schedule_that_is_deleted_by_another_request_meanwhile_is_not_found(mocker: MockerFixture) -> None:
    schedules = mocker.create_autospec(ScheduleStore, instance=True)
    schedules.find.return_value, schedules.delete.return_value = a_schedule(), False

    with refused("schedule_not_found"):
        await delete(schedules, a_principal())


async def test_a_storage_failure_is_not_taken_for_a_missing_schedule(mocker: MockerFixture) -> None:
    schedules = mocker.create_autospec(ScheduleStore, instance=True)
    schedules.find.return_value, schedules.delete.side_effect = a_schedule(), storage_away()

    with refused("storage_unavailable"):
        await delete(schedules, a_principal())
