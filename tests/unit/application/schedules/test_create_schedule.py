"""CreateSchedule: who may create a schedule, when it fires first, and what is audited."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.schedules.create_schedule import CreateSchedule, CreateScheduleCommand
from application.schedules.ports import SCHEDULES_TOPIC, CronTimes, ScheduleStore
from application.schedules.schedule_checks import ScheduleChecks
from application.system.wakeups import Wakeups
from domain.audit.event import AuditAction
from domain.errors import ServiceError, Violation, not_found
from domain.identity.role import Role
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import Effort, ModelSettings
from domain.schedules.schedule import MAX_SCHEDULES, MissedFires, Schedule, schedule_invalid
from domain.threads.message import TextContent
from tests.builders import AGENT, ORG, OTHER_ORG, START, THREAD, an_agent
from tests.doubles.schedules import InMemoryScheduleStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import USER, a_person
from tests.refusals import refused, storage_away
from tests.schedule_builders import a_schedule, a_schedule_id
from tests.unit.application.actors import a_principal, a_stranger

FIRST = START + timedelta(hours=1)


class Ports:
    """Schedules in memory, checks that let all of them pass, and an hour to the first fire."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)
        self.schedules: ScheduleStore = InMemoryScheduleStore(self.state, self.wakeups)
        self.checks: MockType = mocker.create_autospec(ScheduleChecks, instance=True)
        self.checks.agent.return_value = an_agent()
        self.times: MockType = mocker.create_autospec(CronTimes, instance=True)
        self.times.next_after.return_value = FIRST
        self._ids = SequentialIds()

    async def create(self, **command: Any) -> Schedule:
        """Create `nightly`, unless `command` says otherwise."""
        creating = CreateSchedule(
            schedules=self.schedules, checks=self.checks, times=self.times, clock=FixedClock(), ids=self._ids
        )
        defaults: dict[str, Any] = {
            "principal": a_principal(),
            "name": "nightly",
            "cron": "0 3 * * *",
            "timezone": "Europe/Berlin",
            "agent": "researcher",
            "input": (TextContent(text="What is new?"),),
        }
        return await creating.execute(CreateScheduleCommand(**(defaults | command)))

    def assert_nothing_created(self) -> None:
        assert not self.state.schedules
        assert not self.state.audit
        self.wakeups.wake.assert_not_called()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("E7")
async def test_a_schedule_is_stored_with_its_first_time_and_wakes_the_process_that_fires(ports: Ports) -> None:
    schedule = await ports.create()

    assert (schedule.organization_id, schedule.agent_id, schedule.version) == (ORG, AGENT, 1)
    assert (schedule.enabled, schedule.next_fire_at, schedule.created_at) == (True, FIRST, START)
    assert ports.state.schedules == {schedule.id: schedule}
    ports.times.next_after.assert_called_once_with("0 3 * * *", "Europe/Berlin", START)
    ports.wakeups.wake.assert_called_once_with(SCHEDULES_TOPIC)


@pytest.mark.requirement("E7")
async def test_a_schedule_keeps_all_that_its_runs_are_to_have(ports: Ports) -> None:
    said: dict[str, Any] = {
        "thread_id": THREAD,
        "limits": LimitSettings(max_turns=2),
        "model_settings": ModelSettings(effort=Effort.LOW),
        "output_schema": {"type": "object"},
        "model": "scripted:other",
        "tool_allowlist": (),
        "metadata": {"team": "ops"},
        "missed": MissedFires.SKIP,
    }

    schedule = await ports.create(**said)

    assert {name: getattr(schedule, name) for name in said} == said


async def test_a_paused_schedule_has_no_next_time(ports: Ports) -> None:
    schedule = await ports.create(enabled=False)

    assert (schedule.enabled, schedule.next_fire_at) == (False, None)


@pytest.mark.requirement("C5", "E7")
async def test_a_new_schedule_is_audited(ports: Ports) -> None:
    schedule = await ports.create()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.SCHEDULE_CREATED, "key_admin", schedule.id)
    assert entry.details == {
        "name": "nightly",
        "cron": "0 3 * * *",
        "timezone": "Europe/Berlin",
        "agent_id": AGENT,
        "enabled": True,
    }


async def test_an_expression_that_cannot_be_read_is_refused_before_anything_is_looked_up(ports: Ports) -> None:
    ports.checks.require_times.side_effect = schedule_invalid(Violation(path="cron", message="has four fields"))

    with refused("schedule_invalid"):
        await ports.create()

    ports.checks.require_times.assert_called_once_with("0 3 * * *", "Europe/Berlin")
    ports.checks.agent.assert_not_awaited()
    ports.assert_nothing_created()


async def test_a_schedule_that_would_never_fire_is_refused_also_when_it_is_paused(ports: Ports) -> None:
    ports.times.next_after.return_value = None

    for enabled in (True, False):
        with pytest.raises(ServiceError) as caught:
            await ports.create(enabled=enabled)
        assert (caught.value.code, [fault.path for fault in caught.value.violations]) == ("schedule_invalid", ["cron"])

    ports.assert_nothing_created()


async def test_a_schedule_without_a_name_is_refused(ports: Ports) -> None:
    with refused("schedule_invalid"):
        await ports.create(name=" ")

    ports.assert_nothing_created()


async def test_an_agent_that_does_not_exist_is_refused(ports: Ports) -> None:
    ports.checks.agent.side_effect = not_found("agent", "researcher")

    with refused("agent_not_found"):
        await ports.create()

    by, named = ports.checks.agent.await_args.args
    assert (by.organization_id, named) == (ORG, "researcher")
    ports.assert_nothing_created()


async def test_a_schedule_that_could_begin_no_run_is_refused(ports: Ports) -> None:
    ports.checks.require_runnable.side_effect = not_found("thread", THREAD)

    with refused("thread_not_found"):
        await ports.create(thread_id=THREAD)

    ports.assert_nothing_created()


async def test_a_name_is_used_once_in_an_organization(ports: Ports) -> None:
    schedule = await ports.create()

    with refused("schedule_exists"):
        await ports.create()

    assert list(ports.state.schedules) == [schedule.id]


@pytest.mark.requirement("C6")
async def test_another_organization_may_use_the_same_name(ports: Ports) -> None:
    await ports.create()

    assert (await ports.create(principal=a_stranger())).organization_id == OTHER_ORG


async def test_an_organization_has_a_bounded_number_of_schedules(ports: Ports) -> None:
    ids = [a_schedule_id(number) for number in range(1_000, 1_000 + MAX_SCHEDULES)]
    ports.state.schedules = {id: a_schedule(id, name=id) for id in ids}

    with refused("too_many_schedules"):
        await ports.create()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_creates_schedules(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.create(principal=a_principal(role))

    ports.checks.require_times.assert_not_called()
    ports.assert_nothing_created()


async def test_a_schedule_that_cannot_be_stored_is_not_returned(ports: Ports, mocker: MockerFixture) -> None:
    ports.schedules = mocker.create_autospec(ScheduleStore, instance=True)
    ports.schedules.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.create()


@pytest.mark.requirement("P3")
async def test_a_person_lets_a_schedule_use_their_account_and_a_key_has_none(ports: Ports) -> None:
    assert (await ports.create(principal=a_person(Role.ADMIN), own_account=True)).person_id == USER
    assert (await ports.create(name="other", principal=a_person(Role.ADMIN))).person_id is None
    with refused("person_required"):
        await ports.create(name="third", own_account=True)
