"""ListSchedules: who sees which schedules, in which order."""

import pytest
from pytest_mock import MockerFixture

from application.schedules.ports import ScheduleStore
from application.schedules.queries import ListSchedules
from application.system.pages import PageRequest
from application.system.wakeups import Wakeups
from domain.identity.role import Role
from tests.builders import OTHER_ORG, after
from tests.doubles.schedules import InMemoryScheduleStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.schedule_builders import a_schedule, a_schedule_id
from tests.unit.application.actors import a_principal

OLD = a_schedule(a_schedule_id(1), name="old")
NEW = a_schedule(a_schedule_id(2), name="new", created_at=after(1))
THEIRS = a_schedule(a_schedule_id(3), organization_id=OTHER_ORG)


@pytest.fixture
def list_schedules(mocker: MockerFixture) -> ListSchedules:
    state = InMemoryState()
    state.schedules = {schedule.id: schedule for schedule in (OLD, NEW, THEIRS)}
    wakeups = mocker.create_autospec(Wakeups, instance=True)
    return ListSchedules(schedules=InMemoryScheduleStore(state, wakeups))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_sees_the_schedules_of_its_organization_newest_first(
    list_schedules: ListSchedules, role: Role
) -> None:
    page = await list_schedules.execute(principal=a_principal(role))

    assert page.items == (NEW, OLD)


async def test_schedules_are_listed_page_by_page(list_schedules: ListSchedules) -> None:
    first = await list_schedules.execute(principal=a_principal(), page=PageRequest(limit=1))
    rest = PageRequest(limit=1, cursor=first.next_cursor)

    last = await list_schedules.execute(principal=a_principal(), page=rest)

    assert (first.items, last.items, last.next_cursor) == ((NEW,), (OLD,), None)


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    schedules = mocker.create_autospec(ScheduleStore, instance=True)
    schedules.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListSchedules(schedules=schedules).execute(principal=a_principal())
