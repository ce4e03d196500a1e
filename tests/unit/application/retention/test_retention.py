"""Retention: what goes, what stays, and what is said of it."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from pytest_mock import MockerFixture

from application.audit.ports import AuditFilter
from application.audit.prune_audit import PruneAudit
from application.audit.seal_audit import SealAudit
from application.retention.apply_retention import (
    WORKFLOW_RUNS,
    ApplyRetention,
    ApplyRetentionCommand,
    RetentionApplied,
)
from application.retention.ports import Removed, RetentionStore, SweepLock
from application.retention.sweep import SweepHouse
from application.runs.ports import IdempotencyKey
from application.system.pages import PageRequest
from domain.audit.event import AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, ThreadId, WorkflowId, WorkflowRunId
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.jobs.sweep_lock import InProcessSweepLock
from infrastructure.system import RandomIds
from tests.builders import (
    KEY,
    ORG,
    OTHER_ORG,
    START,
    a_message,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    an_audit_event,
    an_organization,
)
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.audit_chain import GivenSealKeys, InMemoryAuditChain
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.retention import InMemoryRetentionStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.stored_workflow_run import StoredWorkflowRun
from tests.doubles.surroundings import FixedClock
from tests.doubles.threads import InMemoryThreadStore

DAYS = 30
NOW = START + timedelta(days=100)
LONG_AGO = NOW - timedelta(days=DAYS, seconds=1)
RECENTLY = NOW - timedelta(days=DAYS) + timedelta(seconds=1)


@dataclass(slots=True)
class House:
    """Two organizations, of which only ORG lets go of anything."""

    state: InMemoryState = field(default_factory=InMemoryState)
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))
    keys: GivenSealKeys = field(default_factory=lambda: GivenSealKeys(b"k" * 32))
    lock: SweepLock = field(default_factory=InProcessSweepLock)
    retention: RetentionStore | None = None

    def __post_init__(self) -> None:
        self.state.organizations = {
            ORG: replace(an_organization(ORG), retention_days=DAYS),
            OTHER_ORG: an_organization(OTHER_ORG),
        }

    @property
    def store(self) -> RetentionStore:
        return self.retention or InMemoryRetentionStore(self.state)

    def apply(self) -> ApplyRetention:
        chain = InMemoryAuditChain(self.state)
        ids = RandomIds()
        return ApplyRetention(
            retention=self.store,
            prune_audit=PruneAudit(seals=chain, keys=self.keys, clock=self.clock, ids=ids, batch=2),
            audit_log=InMemoryAuditLog(self.state),
            clock=self.clock,
            ids=ids,
            stretch=2,
        )

    def sweep(self) -> SweepHouse:
        return SweepHouse(
            organizations=InMemoryOrganizationStore(self.state),
            retention=self.store,
            apply_retention=self.apply(),
            lock=self.lock,
            clock=self.clock,
            batch=2,
        )

    async def applied(self) -> RetentionApplied:
        return await self.apply().execute(ApplyRetentionCommand(organization_id=ORG, retention_days=DAYS))

    async def thread(self, number: int, at: datetime, *, organization_id: OrganizationId = ORG) -> ThreadId:
        thread = a_thread(a_thread_id(number), organization_id=organization_id, created_at=at)
        await InMemoryThreadStore(self.state).add(thread)
        return thread.id

    async def entries(self, *moments: datetime, organization_id: OrganizationId = ORG) -> None:
        """Sealed entries of these moments."""
        first = len(self.state.audit) + 1
        for number, at in enumerate(moments, start=first):
            self.state.record(an_audit_event(number, organization_id=organization_id, at=at))
        await SealAudit(seals=InMemoryAuditChain(self.state), keys=self.keys, clock=self.clock).sweep()

    async def said(self, organization_id: OrganizationId = ORG) -> list[AuditEvent]:
        wanted = AuditFilter(action="retention.applied")
        return list((await InMemoryAuditLog(self.state).page(organization_id, wanted, PageRequest())).items)


@pytest.fixture
def house() -> House:
    return House()


@pytest.mark.requirement("E7")
async def test_threads_on_which_nothing_happened_for_so_many_days_go_and_one_entry_says_how_much(house: House) -> None:
    threads = InMemoryThreadStore(house.state)
    old = [await house.thread(number, LONG_AGO) for number in range(1, 6)]
    await threads.append(ORG, a_message(thread_id=old[0], created_at=LONG_AGO))
    await threads.append(ORG, a_message(2, thread_id=old[1], created_at=RECENTLY))
    young = await house.thread(6, RECENTLY)

    applied = await house.applied()

    assert applied == RetentionApplied(threads=4, runs=0, messages=1, sources=0, workflow_runs=0, audit_events=0)
    assert set(house.state.threads) == {old[1], young}
    (entry,) = await house.said()
    assert (entry.actor, entry.resource, entry.at) == ("system", ORG, NOW)
    assert entry.details == {
        "retention_days": DAYS,
        "before": (NOW - timedelta(days=DAYS)).isoformat(),
        "threads": 4,
        "runs": 0,
        "messages": 1,
        "sources": 0,
        "workflow_runs": 0,
        "audit_events": 0,
    }


@pytest.mark.requirement("E7")
async def test_a_thread_with_an_unfinished_run_is_kept_however_old(house: House) -> None:
    thread_id = await house.thread(1, LONG_AGO)
    runs = InMemoryRunStore(house.state, InProcessWakeups())
    await runs.start(a_new_run(a_run(thread_id=thread_id, created_at=LONG_AGO)))
    assert (await house.applied()).nothing
    assert set(house.state.threads) == {thread_id}
    assert await house.said() == []


@pytest.mark.requirement("E7")
async def test_a_sweep_that_finds_nothing_leaves_no_entry(house: House) -> None:
    await house.thread(1, RECENTLY)
    assert (await house.applied()).nothing
    assert not house.state.audit


@pytest.mark.requirement("C5", "E7")
async def test_the_audit_trail_goes_by_whole_days_and_its_own_entries_cause_no_more(house: House) -> None:
    midnight = (NOW - timedelta(days=DAYS)).replace(hour=0)
    second = timedelta(seconds=1)
    await house.entries(LONG_AGO - timedelta(days=9), midnight - second, midnight, LONG_AGO, RECENTLY)
    assert (await house.applied()).audit_events == 2
    # For as long as a day is kept in whole, the hourly sweeps have nothing to prune, and so nothing to say.
    for _ in range(3):
        await house.entries()
        house.clock.advance(3_600)
        assert (await house.applied()).nothing
    assert len(await house.said()) == 1
    head = house.state.audit_heads[ORG]
    assert (head.pruned_through, len([e for e in house.state.audit.values() if e.at < NOW])) == (2, 3)


@pytest.mark.requirement("C5")
async def test_a_broken_chain_is_left_alone_and_threads_go_all_the_same(house: House) -> None:
    await house.entries(LONG_AGO - timedelta(days=9))
    (entry,) = house.state.audit.values()
    house.state.audit[entry.id] = replace(entry, actor="somebody else")
    await house.thread(1, LONG_AGO)
    assert await house.applied() == RetentionApplied(
        threads=1, runs=0, messages=0, sources=0, workflow_runs=0, audit_events=0
    )
    assert entry.id in house.state.audit


@pytest.mark.requirement("E7")
async def test_what_was_removed_before_a_step_failed_is_recorded(house: House, mocker: MockerFixture) -> None:
    store = InMemoryRetentionStore(house.state)
    for number in (1, 2):
        await house.thread(number, LONG_AGO)
    failing = mocker.create_autospec(RetentionStore, instance=True)
    failing.idle_threads.side_effect = store.idle_threads
    failing.remove.side_effect = [
        Removed(threads=1),
        ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away."),
    ]
    house.retention = failing
    with pytest.raises(ServiceError):
        await house.applied()
    (entry,) = await house.said()
    assert entry.details["threads"] == 1


# --- the sweep ---


@pytest.mark.requirement("E7")
async def test_only_organizations_that_say_how_many_days_they_keep_lose_threads(house: House) -> None:
    await house.thread(1, LONG_AGO)
    kept = await house.thread(2, LONG_AGO, organization_id=OTHER_ORG)
    await house.entries(LONG_AGO - timedelta(days=9), organization_id=OTHER_ORG)
    assert await house.sweep().execute()
    assert set(house.state.threads) == {kept}
    assert len(await house.said()) == 1
    assert not await house.said(OTHER_ORG)
    assert house.state.audit_heads[OTHER_ORG].pruned_through == 0


@pytest.mark.requirement("E7")
async def test_keys_of_over_a_day_are_forgotten_in_every_organization(house: House) -> None:
    runs = InMemoryRunStore(house.state, InProcessWakeups())
    day = timedelta(days=1)
    for number in range(1, 8):
        at = NOW - day if number < 7 else NOW - day + timedelta(seconds=1)
        thread_id = await house.thread(number, at, organization_id=OTHER_ORG)
        run = a_run(a_run_id(number), organization_id=OTHER_ORG, thread_id=thread_id, created_at=at)
        await runs.start(a_new_run(run, idempotency=IdempotencyKey(key=f"key {number}", body_digest="d")))
    await house.sweep().execute()
    assert [key for _, key in house.state.used_keys] == ["key 7"]
    assert len(house.state.runs) == 7


async def test_whoever_finds_another_at_it_leaves(house: House) -> None:
    thread_id = await house.thread(1, LONG_AGO)
    async with house.lock.taken():
        assert not await house.sweep().execute()
    assert set(house.state.threads) == {thread_id}
    assert await house.sweep().execute()
    assert not house.state.threads


async def test_what_fails_for_one_organization_holds_up_no_other(house: House, mocker: MockerFixture) -> None:
    house.state.organizations[OTHER_ORG] = replace(house.state.organizations[OTHER_ORG], retention_days=DAYS)
    store = InMemoryRetentionStore(house.state)
    await house.thread(1, LONG_AGO)
    stuck = await house.thread(2, LONG_AGO, organization_id=OTHER_ORG)
    failing = mocker.create_autospec(RetentionStore, instance=True)
    failing.idle_threads.side_effect = store.idle_threads
    failing.forget_idempotency_keys.return_value = failing.forget_authorizations.return_value = 0

    async def remove(organization_id: OrganizationId, thread_id: ThreadId, before: datetime) -> Removed:
        if organization_id == OTHER_ORG:
            raise ValueError("a row that nobody can read")
        return await store.remove(organization_id, thread_id, before)

    failing.remove.side_effect = remove
    house.retention = failing
    assert await house.sweep().execute()
    assert set(house.state.threads) == {stuck}


async def test_a_database_that_is_away_ends_the_sweep(house: House, mocker: MockerFixture) -> None:
    failing = mocker.create_autospec(RetentionStore, instance=True)
    failing.forget_idempotency_keys.side_effect = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away.")
    house.retention = failing
    with pytest.raises(ServiceError):
        await house.sweep().execute()
    assert failing.forget_idempotency_keys.await_count == 1


@pytest.mark.requirement("E7", "F4")
async def test_workflow_runs_go_by_their_age_and_are_counted(house: House) -> None:
    run = WorkflowRun(
        id=WorkflowRunId("wfr_0"),
        organization_id=ORG,
        workflow_id=WorkflowId("wfl_1"),
        workflow_version=1,
        status=WorkflowRunStatus.QUEUED,
        input=None,
        requested_by=KEY,
        created_at=LONG_AGO,
    )
    count = 2 * WORKFLOW_RUNS
    for number in range(count):
        old = replace(run, id=WorkflowRunId(f"wfr_{number}")).ended(WorkflowRunStatus.CANCELLED, at=LONG_AGO)
        house.state.workflow_runs[old.id] = StoredWorkflowRun(old)
    kept = replace(run, id=WorkflowRunId("wfr_kept")).ended(WorkflowRunStatus.CANCELLED, at=RECENTLY)
    house.state.workflow_runs[kept.id] = StoredWorkflowRun(kept)

    assert (await house.applied()).workflow_runs == count

    assert set(house.state.workflow_runs) == {kept.id}
    (entry,) = await house.said()
    assert entry.details["workflow_runs"] == count
    assert (await house.applied()).nothing
