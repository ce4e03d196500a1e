"""UpdateSchedule: what changes, when the next fire is planned from now on, and what is audited."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.schedules.ports import SCHEDULES_TOPIC, CronTimes, ScheduleStore
from application.schedules.schedule_checks import ScheduleChecks
from application.schedules.update_schedule import UpdateSchedule, UpdateScheduleCommand
from application.system.wakeups import Wakeups
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, Violation, not_found
from domain.identity.role import Role
from domain.ids import AgentId
from domain.runs.limits import LimitSettings
from domain.schedules.schedule import Schedule, schedule_invalid
from domain.threads.message import TextContent
from tests.builders import AGENT, ORG, THREAD, after, an_agent
from tests.doubles.schedules import InMemoryScheduleStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import USER, a_person
from tests.refusals import refused, storage_away
from tests.schedule_builders import SCHEDULE, a_schedule, a_schedule_id
from tests.unit.application.actors import a_principal, a_stranger

NOW = after(10)
PLANNED = NOW + timedelta(hours=1)
STORED = a_schedule(limits=LimitSettings(max_turns=5, max_cost_usd=Decimal(1)), next_fire_at=after(60))
PAUSED = replace(STORED, enabled=False, next_fire_at=None)


class Ports:
    """The schedule `nightly` in memory, checks that let all pass, and an hour to the next fire that
    is planned."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)
        self.schedules: ScheduleStore = InMemoryScheduleStore(self.state, self.wakeups)
        self.checks: MockType = mocker.create_autospec(ScheduleChecks, instance=True)
        self.checks.agent.return_value = an_agent()
        self.times: MockType = mocker.create_autospec(CronTimes, instance=True)
        self.times.next_after.return_value = PLANNED
        self.stored = STORED
        self._ids = SequentialIds()

    @property
    def stored(self) -> Schedule:
        return self.state.schedules[SCHEDULE]

    @stored.setter
    def stored(self, schedule: Schedule) -> None:
        self.state.schedules[SCHEDULE] = schedule

    async def update(self, **command: Any) -> Schedule:
        """Change `nightly`, unless `command` says otherwise, ten seconds after it was created."""
        updating = UpdateSchedule(
            schedules=self.schedules, checks=self.checks, times=self.times, clock=FixedClock(NOW), ids=self._ids
        )
        defaults: dict[str, Any] = {"principal": a_principal(), "schedule": "nightly"}
        return await updating.execute(UpdateScheduleCommand(**(defaults | command)))

    def assert_unchanged(self) -> None:
        assert self.stored == STORED
        assert not self.state.audit
        self.wakeups.wake.assert_not_called()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("E7")
async def test_fields_that_are_named_change_and_the_others_and_the_next_fire_stay(ports: Ports) -> None:
    changed = await ports.update(changes={"name": "daily", "input": (TextContent(text="News?"),)})

    assert changed == replace(STORED, name="daily", input=(TextContent(text="News?"),), version=2, updated_at=NOW)
    assert ports.stored == changed
    ports.times.next_after.assert_not_called()
    ports.wakeups.wake.assert_called_once_with(SCHEDULES_TOPIC)


async def test_limits_are_merged_one_by_one(ports: Ports) -> None:
    assert (await ports.update(limits={"max_turns": None})).limits == LimitSettings(max_cost_usd=Decimal(1))


async def test_another_agent_is_looked_up_in_the_organization(ports: Ports) -> None:
    ports.checks.agent.return_value = an_agent(AgentId("agt_other"))

    assert (await ports.update(agent="other")).agent_id == "agt_other"

    by, named = ports.checks.agent.await_args.args
    assert (by.organization_id, named) == (ORG, "other")


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("changes", [{"cron": "5 3 * * *"}, {"timezone": "Europe/Berlin"}], ids=["cron", "timezone"])
async def test_another_expression_or_zone_plans_the_next_fire_from_now_on(
    ports: Ports, changes: dict[str, str]
) -> None:
    changed = await ports.update(changes=changes)

    assert ports.stored.next_fire_at == changed.next_fire_at == PLANNED
    ports.times.next_after.assert_called_once_with(changed.cron, changed.timezone, NOW)


@pytest.mark.requirement("E7")
async def test_pausing_takes_the_next_fire_away(ports: Ports) -> None:
    await ports.update(changes={"enabled": False})

    assert (ports.stored.enabled, ports.stored.next_fire_at) == (False, None)


@pytest.mark.requirement("E7")
async def test_resuming_plans_from_now_on_and_makes_up_for_nothing(ports: Ports) -> None:
    ports.stored = PAUSED

    await ports.update(changes={"enabled": True})

    assert (ports.stored.enabled, ports.stored.next_fire_at) == (True, PLANNED)


@pytest.mark.requirement("E7")
async def test_a_paused_schedule_can_be_changed_although_its_agent_and_thread_are_gone(ports: Ports) -> None:
    ports.stored = PAUSED
    ports.checks.agent.side_effect = not_found("agent", AGENT)
    ports.checks.require_runnable.side_effect = not_found("thread", THREAD)

    assert (await ports.update(changes={"name": "daily"})).name == "daily"


@pytest.mark.requirement("P2")
async def test_a_paused_schedule_does_not_get_a_thread_that_is_not_there_for_the_caller(ports: Ports) -> None:
    ports.stored = PAUSED
    ports.checks.require_thread.side_effect = not_found("thread", THREAD)

    with refused("thread_not_found"):
        await ports.update(changes={"thread_id": THREAD})

    assert ports.stored == PAUSED


@pytest.mark.parametrize("check", ["agent", "require_runnable"])
async def test_a_schedule_that_fires_must_be_able_to_begin_a_run(ports: Ports, check: str) -> None:
    getattr(ports.checks, check).side_effect = not_found("thread", THREAD)

    with refused("thread_not_found"):
        await ports.update(changes={"thread_id": THREAD})

    ports.assert_unchanged()


async def test_a_fire_that_happens_meanwhile_is_not_undone(ports: Ports, mocker: MockerFixture) -> None:
    schedules = mocker.create_autospec(ScheduleStore, instance=True)
    schedules.find.return_value = STORED
    ports.schedules = schedules

    await ports.update(changes={"name": "daily"})

    assert schedules.save.await_args.kwargs["replanned"] is False


@pytest.mark.requirement("C5", "E7")
async def test_a_change_is_audited_with_the_names_of_the_changed_fields(ports: Ports) -> None:
    await ports.update(changes={"name": "daily", "enabled": False}, limits={"max_turns": 8})

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.SCHEDULE_UPDATED, "key_admin", SCHEDULE)
    assert entry.details == {"name": "daily", "version": 2, "changed": ["name", "limits", "enabled"], "enabled": False}


async def test_a_change_of_nothing_makes_no_version_and_no_audit_entry(ports: Ports) -> None:
    same = await ports.update(changes={"name": "nightly"}, limits={"max_turns": 5}, agent="researcher")

    assert same == STORED
    ports.checks.require_runnable.assert_not_awaited()
    ports.assert_unchanged()


async def test_an_expression_that_cannot_be_read_is_refused(ports: Ports) -> None:
    ports.checks.require_times.side_effect = schedule_invalid(Violation(path="cron", message="has four fields"))

    with refused("schedule_invalid"):
        await ports.update(changes={"cron": "1 2 3 4"})

    ports.assert_unchanged()


async def test_an_expression_that_never_fires_is_refused(ports: Ports) -> None:
    ports.times.next_after.return_value = None

    with refused("schedule_invalid"):
        await ports.update(changes={"cron": "0 0 30 2 *"})

    ports.assert_unchanged()


async def test_a_change_of_a_version_that_was_overtaken_is_refused(ports: Ports) -> None:
    await ports.update(changes={"name": "1"}, expected_version=1)

    with pytest.raises(ServiceError) as caught:
        await ports.update(schedule="1", changes={"name": "2"}, expected_version=1)

    assert (caught.value.code, caught.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    assert ports.stored.name == "1"


async def test_the_name_of_another_schedule_is_refused(ports: Ports) -> None:
    other = a_schedule(a_schedule_id(2), name="taken")
    ports.state.schedules[other.id] = other

    with refused("schedule_exists"):
        await ports.update(changes={"name": "taken"})

    ports.assert_unchanged()


async def test_an_unknown_schedule_is_not_found(ports: Ports) -> None:
    with refused("schedule_not_found"):
        await ports.update(schedule="other")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("schedule", [SCHEDULE, "nightly"], ids=["id", "name"])
async def test_a_schedule_of_another_organization_is_not_found(ports: Ports, schedule: str) -> None:
    with refused("schedule_not_found"):
        await ports.update(principal=a_stranger(), schedule=schedule, changes={"enabled": False})

    ports.assert_unchanged()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_changes_schedules(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.update(principal=a_principal(role), changes={"enabled": False})

    ports.assert_unchanged()


async def test_a_change_is_stored_over_the_version_that_was_read_and_a_failure_is_raised(
    ports: Ports, mocker: MockerFixture
) -> None:
    schedules = mocker.create_autospec(ScheduleStore, instance=True)
    schedules.find.return_value = replace(STORED, version=7)
    schedules.save.side_effect = storage_away()
    ports.schedules = schedules

    with refused("storage_unavailable"):
        await ports.update(changes={"cron": "5 3 * * *"})

    assert schedules.save.await_args.kwargs["expected_version"] == 7
    assert schedules.save.await_args.kwargs["replanned"] is True


@pytest.mark.requirement("P3")
async def test_people_put_in_their_own_account_and_take_it_out(ports: Ports) -> None:
    person = a_person(Role.ADMIN)
    assert (await ports.update(principal=person, own_account=True)).person_id == USER
    assert (await ports.update(principal=person, changes={"name": "daily"})).person_id == USER
    assert (await ports.update(principal=person, schedule="daily", own_account=False)).person_id is None
    with refused("person_required"):
        await ports.update(schedule="daily", own_account=True)


@pytest.mark.requirement("P3")
async def test_a_change_by_another_takes_the_account_out_and_pausing_does_not(ports: Ports) -> None:
    ports.stored = replace(STORED, person_id=USER)
    assert (await ports.update()).person_id == USER
    paused = await ports.update(changes={"enabled": False})
    assert paused.person_id == USER
    assert (
        await ports.update(changes={"enabled": True, "input": (TextContent(text="Send it all."),)})
    ).person_id is None
    [_, entry] = ports.state.audit.values()
    assert "person_id" in str(entry.details["changed"])


@pytest.mark.requirement("P3")
async def test_only_the_person_resumes_a_schedule_with_their_account(ports: Ports) -> None:
    ports.stored = replace(STORED, person_id=USER, enabled=False)
    assert (await ports.update(changes={"enabled": True}, principal=a_person(Role.ADMIN))).person_id == USER
    ports.stored = replace(STORED, person_id=USER, enabled=False)
    assert (await ports.update(changes={"enabled": True})).person_id is None
