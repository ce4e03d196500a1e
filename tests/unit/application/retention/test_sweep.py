"""RetentionSweep: one process sweeps at a time, and the trouble of one organization is not that of
another."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.ports import OrganizationStore
from application.retention.apply_retention import ApplyRetention, ApplyRetentionCommand, RetentionApplied
from application.retention.maintain_months import MaintainMonths
from application.retention.ports import ArchiveDrafts, ExpiringTools, FreeSpace, RetentionStore, SweepLock
from application.retention.sweep import RetentionSweep
from application.runs.new_run import IdempotencyKey
from domain.errors import ErrorKind, ServiceError
from domain.identity.organization import Organization
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import ORG, OTHER_ORG, START, a_new_run, a_run, a_run_id, a_thread, a_thread_id, an_organization
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.retention import InMemoryRetentionStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away

NOW = START + timedelta(days=100)
DAY = timedelta(days=1)
KEEPS_30_DAYS = replace(an_organization(ORG), retention_days=30)
KEEPS_7_DAYS = replace(an_organization(OTHER_ORG), retention_days=7)
APPLIED = RetentionApplied(threads=1, runs=0, messages=0, sources=0, workflow_runs=0, audit_events=0)
BATCH = 2


class Ports:
    """Two organizations with retention, nothing else to forget, and a lock that is free."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.have(KEEPS_30_DAYS, KEEPS_7_DAYS)
        self.organizations: OrganizationStore = InMemoryOrganizationStore(self.state)
        self.nothing_old: MockType = mocker.create_autospec(RetentionStore, instance=True)
        self.nothing_old.forget_idempotency_keys.return_value = 0
        self.nothing_old.forget_authorizations.return_value = 0
        self.retention: RetentionStore = self.nothing_old
        self.tools: MockType = mocker.create_autospec(ExpiringTools, instance=True)
        self.tools.expire.return_value = 0
        self.apply_retention: MockType = mocker.create_autospec(ApplyRetention, instance=True)
        self.apply_retention.execute.return_value = APPLIED
        self.space: MockType = mocker.create_autospec(FreeSpace, instance=True)
        self.space.give_back.return_value = False
        self.maintain_months: MockType = mocker.create_autospec(MaintainMonths, instance=True)
        self.drafts: MockType = mocker.create_autospec(ArchiveDrafts, instance=True)
        self.drafts.remove.return_value = 0
        self.is_free = True
        self.is_held = False
        self.lock: MockType = mocker.create_autospec(SweepLock, instance=True)
        self.lock.taken.side_effect = self._taken

    def have(self, *organizations: Organization) -> None:
        self.state.organizations = {organization.id: organization for organization in organizations}

    @property
    def sweeping(self) -> RetentionSweep:
        return RetentionSweep(
            organizations=self.organizations,
            retention=self.retention,
            tools=self.tools,
            apply_retention=self.apply_retention,
            maintain_months=self.maintain_months,
            space=self.space,
            lock=self.lock,
            clock=FixedClock(NOW),
            drafts=self.drafts,
            batch=BATCH,
        )

    def swept(self) -> set[ApplyRetentionCommand]:
        """What retention was applied to."""
        return {call.args[0] for call in self.apply_retention.execute.await_args_list}

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[bool]:
        self.is_held = True
        try:
            yield self.is_free
        finally:
            self.is_held = False


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def retention_of(organization: Organization) -> ApplyRetentionCommand:
    assert organization.retention_days is not None
    return ApplyRetentionCommand(organization_id=organization.id, retention_days=organization.retention_days)


@pytest.mark.requirement("E7")
async def test_each_organization_loses_what_is_older_than_it_says(ports: Ports) -> None:
    assert await ports.sweeping.execute()

    assert ports.swept() == {retention_of(KEEPS_30_DAYS), retention_of(KEEPS_7_DAYS)}


@pytest.mark.requirement("E7")
async def test_an_organization_that_says_nothing_keeps_all(ports: Ports) -> None:
    ports.have(KEEPS_30_DAYS, an_organization(OTHER_ORG))

    await ports.sweeping.execute()

    assert ports.swept() == {retention_of(KEEPS_30_DAYS)}


@pytest.mark.requirement("E7")
async def test_idempotency_keys_of_over_a_day_are_forgotten_in_organizations_that_keep_all_too(ports: Ports) -> None:
    ports.have(an_organization(OTHER_ORG))
    ports.retention = InMemoryRetentionStore(ports.state)
    runs = InMemoryRunStore(ports.state, InProcessWakeups())
    for number in range(1, 8):
        at = NOW - DAY if number < 7 else NOW - DAY + timedelta(seconds=1)
        thread = a_thread(a_thread_id(number), organization_id=OTHER_ORG, created_at=at)
        ports.state.threads[thread.id] = StoredThread(thread=thread)
        run = a_run(a_run_id(number), organization_id=OTHER_ORG, thread_id=thread.id, created_at=at)
        await runs.start(a_new_run(run, idempotency=IdempotencyKey(key=f"key {number}", body_digest="d")))

    await ports.sweeping.execute()

    assert [key for _, key in ports.state.used_keys] == ["key 7"]
    assert len(ports.state.runs) == 7


@pytest.mark.requirement("E7")
async def test_authorizations_that_have_expired_are_forgotten_batch_by_batch(ports: Ports) -> None:
    ports.nothing_old.forget_authorizations.side_effect = [BATCH, BATCH, 0]

    await ports.sweeping.execute()

    assert [call.args for call in ports.nothing_old.forget_authorizations.await_args_list] == [(NOW,)] * 3


@pytest.mark.requirement("E7")
async def test_a_process_that_finds_another_one_sweeping_leaves(ports: Ports) -> None:
    ports.is_free = False

    assert not await ports.sweeping.execute()

    assert not ports.swept()
    ports.nothing_old.forget_idempotency_keys.assert_not_awaited()
    ports.nothing_old.forget_authorizations.assert_not_awaited()


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("failure", [None, storage_away()], ids=["done", "failed"])
async def test_the_lock_is_held_during_the_sweep_and_released_after(ports: Ports, failure: ServiceError | None) -> None:
    was_held: list[bool] = []

    async def applied(_: ApplyRetentionCommand) -> RetentionApplied:
        was_held.append(ports.is_held)
        if failure is not None:
            raise failure
        return APPLIED

    ports.apply_retention.execute.side_effect = applied

    if failure is None:
        await ports.sweeping.execute()
    else:
        with refused(failure.code):
            await ports.sweeping.execute()

    assert set(was_held) == {True}
    assert not ports.is_held


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "failure",
    [ValueError("a row that cannot be read"), ServiceError("broken", ErrorKind.INTERNAL, "Broken.")],
    ids=lambda failure: type(failure).__name__,
)
async def test_what_fails_for_one_organization_holds_up_no_other(ports: Ports, failure: Exception) -> None:
    async def applied(command: ApplyRetentionCommand) -> RetentionApplied:
        if command.organization_id == OTHER_ORG:  # the newest, which comes first
            raise failure
        return APPLIED

    ports.apply_retention.execute.side_effect = applied

    assert await ports.sweeping.execute()

    assert retention_of(KEEPS_30_DAYS) in ports.swept()
    ports.nothing_old.forget_authorizations.assert_awaited_once()


async def test_keys_that_cannot_be_forgotten_do_not_keep_the_threads_of_their_organization(ports: Ports) -> None:
    ports.nothing_old.forget_idempotency_keys.side_effect = ValueError("a row that cannot be read")

    assert await ports.sweeping.execute()

    assert ports.swept() == {retention_of(KEEPS_30_DAYS), retention_of(KEEPS_7_DAYS)}


async def test_a_database_that_is_away_ends_the_sweep(ports: Ports) -> None:
    ports.nothing_old.forget_idempotency_keys.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.sweeping.execute()

    assert ports.nothing_old.forget_idempotency_keys.await_count == 1
    assert not ports.swept()
    ports.nothing_old.forget_authorizations.assert_not_awaited()


async def test_organizations_that_cannot_be_read_lose_nothing(ports: Ports, mocker: MockerFixture) -> None:
    ports.organizations = mocker.create_autospec(OrganizationStore, instance=True)
    ports.organizations.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.sweeping.execute()

    assert not ports.swept()


@pytest.mark.requirement("F6")
async def test_expired_tools_of_workflow_runs_lose_their_values_batch_by_batch(ports: Ports) -> None:
    left = {ORG: [BATCH, BATCH, 1], OTHER_ORG: [0]}
    ports.tools.expire.side_effect = lambda organization_id, at, limit: left[organization_id].pop(0)

    assert await ports.sweeping.execute()

    assert left == {ORG: [], OTHER_ORG: []}
    assert {(call.args[1], call.kwargs["limit"]) for call in ports.tools.expire.await_args_list} == {(NOW, BATCH)}


@pytest.mark.requirement("K5")
async def test_space_is_returned_in_steps_after_everything_was_removed(ports: Ports) -> None:
    ports.space.give_back.side_effect = [True, True, False]

    await ports.sweeping.execute()

    assert ports.space.give_back.await_count == 3
    assert ports.apply_retention.execute.await_count == 2


@pytest.mark.requirement("K5")
async def test_a_process_that_does_not_sweep_returns_no_space(ports: Ports) -> None:
    ports.is_free = False

    await ports.sweeping.execute()

    ports.space.give_back.assert_not_awaited()


@pytest.mark.requirement("K5")
async def test_months_of_tables_are_maintained_before_organizations_have_their_retention(ports: Ports) -> None:
    async def maintained() -> None:
        ports.apply_retention.execute.assert_not_awaited()

    ports.maintain_months.execute.side_effect = maintained

    assert await ports.sweeping.execute()

    ports.maintain_months.execute.assert_awaited_once()


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("failure", [storage_away(), RuntimeError("unexpected")], ids=["in use", "unexpected"])
async def test_months_that_cannot_be_maintained_do_not_end_the_sweep(ports: Ports, failure: Exception) -> None:
    ports.maintain_months.execute.side_effect = failure

    assert await ports.sweeping.execute()

    assert ports.swept() == {retention_of(KEEPS_30_DAYS), retention_of(KEEPS_7_DAYS)}


@pytest.mark.requirement("K5")
async def test_files_of_the_archive_that_a_killed_process_began_go_after_an_hour(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    ports.drafts.remove.return_value = 3

    with caplog.at_level("INFO"):
        await ports.sweeping.execute()

    ports.drafts.remove.assert_awaited_once_with(NOW - timedelta(hours=1))
    assert "removed 3 unfinished files" in caplog.text
