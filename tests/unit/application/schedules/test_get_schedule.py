"""GetSchedule: who reads a schedule, by which names."""

import pytest
from pytest_mock import MockerFixture

from application.schedules.ports import ScheduleStore
from application.schedules.queries import GetSchedule
from application.system.wakeups import Wakeups
from domain.identity.role import Role
from tests.doubles.schedules import InMemoryScheduleStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.schedule_builders import SCHEDULE, a_schedule
from tests.unit.application.actors import a_principal, a_stranger


@pytest.fixture
def get(mocker: MockerFixture) -> GetSchedule:
    """Over tables with the schedule `nightly`."""
    state = InMemoryState()
    state.schedules[SCHEDULE] = a_schedule()
    return GetSchedule(schedules=InMemoryScheduleStore(state, mocker.create_autospec(Wakeups, instance=True)))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("schedule", [SCHEDULE, "nightly"], ids=["id", "name"])
async def test_every_role_reads_a_schedule_by_id_and_by_name(get: GetSchedule, role: Role, schedule: str) -> None:
    assert await get.execute(principal=a_principal(role), schedule=schedule) == a_schedule()


async def test_an_unknown_schedule_is_not_found(get: GetSchedule) -> None:
    with refused("schedule_not_found"):
        await get.execute(principal=a_principal(), schedule="other")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("schedule", [SCHEDULE, "nightly"], ids=["id", "name"])
async def test_a_schedule_of_another_organization_is_not_found(get: GetSchedule, schedule: str) -> None:
    with refused("schedule_not_found"):
        await get.execute(principal=a_stranger(), schedule=schedule)


async def test_a_storage_failure_is_not_taken_for_a_missing_schedule(mocker: MockerFixture) -> None:
    schedules = mocker.create_autospec(ScheduleStore, instance=True)
    schedules.find.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetSchedule(schedules=schedules).execute(principal=a_principal(), schedule="nightly")
