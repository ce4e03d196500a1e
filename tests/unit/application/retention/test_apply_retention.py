"""ApplyRetention: what goes, what stays, and what is audited of it."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditLog
from application.audit.prune_audit import PruneAudit
from application.retention.apply_retention import (
    NOTICES,
    WORKFLOW_RUNS,
    ApplyRetention,
    ApplyRetentionCommand,
    RetentionApplied,
)
from application.retention.archive_thread import ArchiveThread
from application.retention.ports import IdleThreads, Removed, RetentionStore
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError, conflict
from domain.ids import ThreadId, WorkflowId, WorkflowRunId
from domain.runs.run import RunStatus
from domain.threads.thread import Quarantine
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from infrastructure.runtime.system import RandomIds
from tests.builders import KEY, ORG, OTHER_ORG, RUN, START, a_message, a_run, a_thread, a_thread_id, an_organization
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.audit_chain import InMemoryAuditChain
from tests.doubles.retention import InMemoryRetentionStore
from tests.doubles.state import InMemoryState, StoredRun, StoredThread
from tests.doubles.stored_workflow_run import StoredWorkflowRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.audit.trail import KEYS, add_entries, seal

DAYS = 30
NOW = START + timedelta(days=100)
BEFORE = NOW - timedelta(days=DAYS)
SECOND = timedelta(seconds=1)
LONG_AGO, RECENTLY = BEFORE - SECOND, BEFORE + SECOND
NOTHING = RetentionApplied(threads=0, runs=0, messages=0, sources=0, workflow_runs=0, audit_events=0)
WORKFLOW_RUN = WorkflowRun(
    id=WorkflowRunId("wfr_1"),
    organization_id=ORG,
    workflow_id=WorkflowId("wfl_1"),
    workflow_version=1,
    status=WorkflowRunStatus.QUEUED,
    input=None,
    requested_by=KEY,
    created_at=LONG_AGO,
)


@dataclass(slots=True)
class Tables:
    """In-memory tables with two organizations, and retention of ORG over them."""

    state: InMemoryState = field(default_factory=InMemoryState)
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))
    ids: RandomIds = field(default_factory=RandomIds)

    def __post_init__(self) -> None:
        self.state.organizations = {id: an_organization(id) for id in (ORG, OTHER_ORG)}

    async def apply(self) -> RetentionApplied:
        chain = InMemoryAuditChain(self.state)
        applying = ApplyRetention(
            retention=InMemoryRetentionStore(self.state),
            prune_audit=PruneAudit(seals=chain, keys=KEYS, clock=self.clock, ids=self.ids, batch=2),
            audit_log=InMemoryAuditLog(self.state),
            clock=self.clock,
            ids=self.ids,
            stretch=2,
        )
        return await applying.execute(ApplyRetentionCommand(organization_id=ORG, retention_days=DAYS))

    def thread(self, number: int, at: datetime = LONG_AGO, *, message_at: datetime | None = None) -> ThreadId:
        """A thread of that moment, with a message if that has one."""
        thread = a_thread(a_thread_id(number), created_at=at)
        messages = [] if message_at is None else [a_message(number, thread_id=thread.id, created_at=message_at)]
        self.state.threads[thread.id] = StoredThread(thread=thread, messages=messages)
        return thread.id

    def said(self) -> list[AuditEvent]:
        """What the trail says of retention."""
        return [entry for entry in self.state.audit.values() if entry.action is AuditAction.RETENTION_APPLIED]


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.mark.requirement("E7")
async def test_threads_on_which_nothing_happened_for_so_many_days_go(tables: Tables) -> None:
    for number in range(1, 6):
        tables.thread(number, message_at=LONG_AGO)
    used = tables.thread(6, message_at=RECENTLY)
    young = tables.thread(7, RECENTLY)

    applied = await tables.apply()

    assert applied == replace(NOTHING, threads=5, messages=5)
    assert set(tables.state.threads) == {used, young}


@pytest.mark.requirement("E7")
async def test_the_runs_of_a_thread_go_with_it(tables: Tables) -> None:
    thread_id = tables.thread(1)
    run = a_run(thread_id=thread_id, created_at=LONG_AGO, status=RunStatus.COMPLETED)
    tables.state.runs[RUN] = StoredRun(run=replace(run, finished_at=LONG_AGO))

    assert await tables.apply() == replace(NOTHING, threads=1, runs=1)

    assert not tables.state.runs


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.IN_PROGRESS, RunStatus.REQUIRES_ACTION])
async def test_a_thread_with_an_unfinished_run_stays_however_old(tables: Tables, status: RunStatus) -> None:
    thread_id = tables.thread(1)
    tables.state.runs[RUN] = StoredRun(run=a_run(thread_id=thread_id, created_at=LONG_AGO, status=status))

    assert (await tables.apply()).nothing

    assert set(tables.state.threads) == {thread_id}


@pytest.mark.requirement("C4", "E7")
async def test_a_thread_in_quarantine_stays_however_old(tables: Tables) -> None:
    thread_id = tables.thread(1)
    stored = tables.state.threads[thread_id]
    stored.thread = replace(stored.thread, quarantine=Quarantine(run_id=RUN, canary_id="vault", at=LONG_AGO))

    assert (await tables.apply()).nothing

    assert set(tables.state.threads) == {thread_id}


@pytest.mark.requirement("E7", "F4")
async def test_workflow_runs_go_so_many_days_after_their_end(tables: Tables) -> None:
    count = 2 * WORKFLOW_RUNS
    for number in range(count):
        old = replace(WORKFLOW_RUN, id=WorkflowRunId(f"wfr_{number}"))
        ended = old.ended(WorkflowRunStatus.CANCELLED, at=LONG_AGO)
        tables.state.workflow_runs[old.id] = StoredWorkflowRun(ended)
    kept = replace(WORKFLOW_RUN, id=WorkflowRunId("wfr_kept")).ended(WorkflowRunStatus.CANCELLED, at=RECENTLY)
    tables.state.workflow_runs[kept.id] = StoredWorkflowRun(kept)

    assert await tables.apply() == replace(NOTHING, workflow_runs=count)

    assert set(tables.state.workflow_runs) == {kept.id}


@pytest.mark.requirement("C5", "E7")
async def test_the_audit_trail_goes_by_whole_days_and_its_own_entries_cause_no_more(tables: Tables) -> None:
    midnight = BEFORE.replace(hour=0)
    add_entries(tables.state, LONG_AGO - timedelta(days=9), midnight - SECOND, midnight, LONG_AGO, RECENTLY)
    await seal(tables.state, at=NOW)

    assert (await tables.apply()).audit_events == 2

    # For as long as a day is kept in whole, the hourly sweeps have nothing to prune, and so nothing
    # to say.
    for _ in range(3):
        await seal(tables.state, at=NOW)
        tables.clock.advance(3_600)
        assert (await tables.apply()).nothing
    assert len(tables.said()) == 1
    assert tables.state.audit_heads[ORG].pruned_through == 2
    assert len([entry for entry in tables.state.audit.values() if entry.at < NOW]) == 3


@pytest.mark.requirement("C5", "E7")
async def test_what_was_removed_is_one_entry_by_the_system(tables: Tables) -> None:
    tables.thread(1, message_at=LONG_AGO)
    tables.thread(2)

    await tables.apply()

    [entry] = tables.said()
    assert (entry.actor, entry.resource, entry.at) == ("system", ORG, NOW)
    assert entry.details == {
        "retention_days": DAYS,
        "before": BEFORE.isoformat(),
        "threads": 2,
        "runs": 0,
        "messages": 1,
        "sources": 0,
        "workflow_runs": 0,
        "audit_events": 0,
    }


@pytest.mark.requirement("E7")
async def test_where_nothing_is_old_enough_nothing_is_audited(tables: Tables) -> None:
    tables.thread(1, RECENTLY)

    assert await tables.apply() == NOTHING

    assert not tables.state.audit


@pytest.mark.requirement("C5")
async def test_a_broken_audit_chain_is_left_alone_and_threads_go_all_the_same(tables: Tables) -> None:
    [entry] = add_entries(tables.state, LONG_AGO - timedelta(days=9))
    await seal(tables.state, at=NOW)
    tables.state.audit[entry.id] = replace(entry, actor="an impostor")
    tables.thread(1)

    assert await tables.apply() == replace(NOTHING, threads=1)

    assert entry.id in tables.state.audit


# --- failures ---


class Ports:
    """Mocks: one idle thread of one step, one workflow run, one entry."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.retention: MockType = mocker.create_autospec(RetentionStore, instance=True)
        self.retention.idle_threads.return_value = IdleThreads(found=(a_thread_id(1),), next=None)
        self.retention.remove.return_value = Removed(threads=1)
        self.retention.remove_workflow_runs.return_value = 1
        self.retention.remove_notices.return_value = 0
        self.prune_audit: MockType = mocker.create_autospec(PruneAudit, instance=True)
        self.prune_audit.execute.return_value = 1
        self.audit_log: MockType = mocker.create_autospec(AuditLog, instance=True)
        self.archive_thread: MockType | None = None

    async def apply(self) -> RetentionApplied:
        applying = ApplyRetention(
            retention=self.retention,
            prune_audit=self.prune_audit,
            audit_log=self.audit_log,
            clock=FixedClock(NOW),
            ids=SequentialIds(),
            archive_thread=self.archive_thread,
        )
        return await applying.execute(ApplyRetentionCommand(organization_id=ORG, retention_days=DAYS))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("E7", "U6")
async def test_notices_go_in_steps_until_none_is_left(ports: Ports) -> None:
    ports.retention.remove_notices.side_effect = [NOTICES, NOTICES - 1]

    await ports.apply()

    assert {call.args for call in ports.retention.remove_notices.await_args_list} == {(ORG, BEFORE)}
    assert ports.retention.remove_notices.await_count == 2


@pytest.mark.requirement("E7")
async def test_a_thread_goes_in_steps_until_nothing_of_it_is_left(ports: Ports) -> None:
    ports.retention.remove.side_effect = [
        Removed(sources=2, more=True),
        Removed(runs=1, messages=3, more=True),
        Removed(threads=1),
    ]

    applied = await ports.apply()

    assert (applied.threads, applied.runs, applied.messages, applied.sources) == (1, 1, 3, 2)
    assert {call.args for call in ports.retention.remove.await_args_list} == {(ORG, a_thread_id(1), BEFORE)}


@pytest.mark.requirement("E7")
async def test_a_thread_that_is_used_again_meanwhile_is_left_as_it_is_then(ports: Ports) -> None:
    ports.retention.remove.side_effect = [Removed(runs=1, more=True), Removed()]

    applied = await ports.apply()

    assert (applied.threads, applied.runs) == (0, 1)
    assert ports.retention.remove.await_count == 2


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("failing", "removed"),
    [
        ("remove", {"threads": 1, "workflow_runs": 0}),
        ("remove_workflow_runs", {"threads": 2, "workflow_runs": 0}),
        ("prune", {"threads": 2, "workflow_runs": 1}),
    ],
)
async def test_what_was_removed_before_a_step_failed_is_audited(
    ports: Ports, failing: str, removed: dict[str, int]
) -> None:
    ports.retention.idle_threads.return_value = IdleThreads(found=(a_thread_id(1), a_thread_id(2)), next=None)
    if failing == "remove":
        ports.retention.remove.side_effect = [Removed(threads=1), storage_away()]
    elif failing == "remove_workflow_runs":
        ports.retention.remove_workflow_runs.side_effect = storage_away()
    else:
        ports.prune_audit.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.apply()

    [entry] = ports.audit_log.record.await_args.args
    assert {name: entry.details[name] for name in removed} == removed


async def test_threads_that_cannot_be_looked_for_remove_and_audit_nothing(ports: Ports) -> None:
    ports.retention.idle_threads.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.apply()

    ports.retention.remove.assert_not_awaited()
    ports.prune_audit.execute.assert_not_awaited()
    ports.audit_log.record.assert_not_awaited()


async def test_a_broken_chain_is_logged_and_counts_as_nothing_pruned(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    ports.prune_audit.execute.side_effect = conflict("audit_chain_broken", "The chain is not as it was left.")

    assert (await ports.apply()).audit_events == 0

    assert "The chain is not as it was left." in caplog.text


@pytest.mark.requirement("E7", "K5")
async def test_a_thread_is_archived_before_anything_of_it_goes(ports: Ports, mocker: MockerFixture) -> None:
    ports.archive_thread = mocker.create_autospec(ArchiveThread, instance=True)
    ports.archive_thread.execute.side_effect = lambda *_: ports.retention.remove.assert_not_awaited()

    assert (await ports.apply()).threads == 1

    ports.archive_thread.execute.assert_awaited_once_with(ORG, a_thread_id(1))


@pytest.mark.requirement("E7", "K5")
async def test_threads_that_cannot_be_archived_stay_and_other_data_goes(ports: Ports, mocker: MockerFixture) -> None:
    ports.archive_thread = mocker.create_autospec(ArchiveThread, instance=True)
    ports.archive_thread.execute.side_effect = ServiceError("archive_failed", ErrorKind.INTERNAL, "The disk is full.")

    assert await ports.apply() == replace(NOTHING, workflow_runs=1, audit_events=1)

    ports.retention.remove.assert_not_awaited()


@pytest.mark.requirement("E7", "K5")
async def test_audit_entries_that_cannot_be_archived_stay_which_one_sentence_tells(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    ports.prune_audit.execute.side_effect = ServiceError("archive_failed", ErrorKind.INTERNAL, "The disk is full.")

    assert (await ports.apply()).audit_events == 0

    [told] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (told.getMessage(), told.exc_info) == ("The disk is full.", None)


@pytest.mark.requirement("E7", "K5")
@pytest.mark.parametrize("error", [ValueError("a run"), ServiceError("secret_unreadable", ErrorKind.INTERNAL, "No.")])
async def test_a_thread_that_cannot_be_read_for_the_archive_stays_and_later_ones_go(
    ports: Ports, mocker: MockerFixture, error: Exception
) -> None:
    ports.retention.idle_threads.return_value = IdleThreads(found=(a_thread_id(1), a_thread_id(2)), next=None)
    ports.archive_thread = mocker.create_autospec(ArchiveThread, instance=True)
    ports.archive_thread.execute.side_effect = [error, None]

    assert (await ports.apply()).threads == 1

    ports.retention.remove.assert_awaited_once_with(ORG, a_thread_id(2), BEFORE)


@pytest.mark.requirement("E7", "K5")
async def test_a_database_that_is_away_while_a_thread_is_archived_ends_the_sweep(
    ports: Ports, mocker: MockerFixture
) -> None:
    ports.archive_thread = mocker.create_autospec(ArchiveThread, instance=True)
    ports.archive_thread.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.apply()
