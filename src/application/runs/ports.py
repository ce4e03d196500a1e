"""Ports of the runs slice: stored runs, the journal of a claimed run, leases, the queue, wake-ups."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.approvals.approval import ApprovalOutcome
from domain.ids import AgentId, OrganizationId, RunId, ThreadId, WorkerId
from domain.runs.events import NewEvent, RunEvent
from domain.runs.lease import Lease
from domain.runs.ledger import InputAnswer, Settlement, ToolCall
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.step import Step
from domain.schedules.firing import Firing
from domain.threads.message import Message
from domain.threads.thread import Thread

# --- stored runs, as the API side sees them -------------------------------------------------------------------------


KEY_LIFETIME = timedelta(hours=24)
"""How long an idempotency key names its run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A client's key for one creation: the same key with the same `body_digest` gives the same run."""

    key: str
    body_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be stored, with its thread if that is new. One that a schedule asks for is its `firing`, and has no key.
    `webhook_url` is where the run's webhook is, if it has one; it is stored encrypted, and never read back with the run."""

    run: Run
    new_thread: Thread | None
    strategy: MultitaskStrategy
    idempotency: IdempotencyKey | None
    firing: Firing | None = None
    webhook_url: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRun:
    """`created` is False when an idempotency key named an earlier run. `interrupted` names runs asked to stop, `ended` are
    those that ended with this start: settled by the new message, or stopped while nobody executed them. `promoted` is a run
    that waited before this one and can go on, since starting this one made room on the thread. `submitted`: a queue that is
    stored in the same database was told of both in the same transaction."""

    run: Run
    created: bool
    interrupted: tuple[RunId, ...] = ()
    ended: tuple[Run, ...] = ()
    promoted: RunId | None = None
    submitted: bool = False

    @property
    def to_submit(self) -> tuple[RunId, ...]:
        """Runs that can go on, and of which the queue does not know."""
        if self.submitted:
            return ()
        created = (self.run.id,) if self.created else ()
        return created if self.promoted is None else (*created, self.promoted)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Conditions that all must hold; None does not restrict."""

    thread_id: ThreadId | None = None
    agent_id: AgentId | None = None
    status: RunStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOutcome:
    """`run` as it stands now. A run nobody executes is cancelled at once; one in progress is only asked to stop.
    `promoted` is the thread's next run, if this made room for it."""

    run: Run
    promoted: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A run and the messages it wrote, in order, as they stood at one moment."""

    run: Run
    messages: tuple[Message, ...]


class RunStore(Protocol):
    """Runs as the API sees them. It never writes into a claimed run, except for asking it to stop.

    After each commit the followers of every run it touched are woken, as RunJournal says; of a run asked to stop the
    control topic.
    """

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED with its `run.queued` event.

        Settles the thread's waiting run if all its pending calls are displayable (it completes, D5; with ENQUEUE, one that
        has calls to make first goes on, to complete after them); the strategy is about the unfinished runs that remain. Raises CONFLICT `thread_busy` (extra `run_id`) for strategy REJECT with
        such a run, INVALID `idempotency_key_reused` for the same key with another body within 24 h, NOT_FOUND without
        the thread, CONFLICT `thread_quarantined` until it is released; then nothing was stored.
        With a `firing` the schedule moves on to its next time in the same transaction, naming the run, with an audit entry
        `schedule.fired`; CONFLICT `schedule_moved` if it is not at the firing's version and time any more, and nothing was stored.
        INTERRUPT and ROLLBACK ask unfinished runs of the thread to stop (queued and waiting ones are cancelled at once,
        at the new run's `created_at` by its requester; all are named in `interrupted`);
        the new run goes first. ROLLBACK marks their messages superseded once they have ended, however they end
        and whatever comes after it.
        """
        ...

    async def started_before(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        """The run that the key named within 24 h before `at`, as it stands, or None; changes nothing. Raises INVALID
        `idempotency_key_reused` for another body. What counts in the end is `start`, which looks again."""
        ...

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""
        ...

    async def page(self, organization_id: OrganizationId, wanted: RunFilter, request: PageRequest) -> Page[Run]:
        """Runs, newest first."""
        ...

    async def messages(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Message, ...]:
        """The run's own messages, in order, superseded ones too."""
        ...

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None:
        """The run with its messages, or None."""
        ...

    async def tool_calls(self, organization_id: OrganizationId, run_id: RunId) -> tuple[ToolCall, ...]:
        """The run's ledger entries, in order."""
        ...

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        """Events with a higher seq, in order."""
        ...

    async def request_cancel(
        self, organization_id: OrganizationId, run_id: RunId, *, actor: str, at: datetime
    ) -> CancelOutcome | None:
        """Cancel a queued or waiting run (closing its open calls), or mark one in progress; no change if it has ended.
        None if there is no such run."""
        ...

    async def resume(
        self,
        organization_id: OrganizationId,
        run_id: RunId,
        settlements: tuple[Settlement, ...],
        *,
        answers: tuple[InputAnswer, ...] = (),
        outcomes: tuple[ApprovalOutcome, ...] = (),
        actor: str,
        at: datetime,
    ) -> Run:
        """Settle calls that await the client, each with its event and an audit entry that names `actor` (a key's id),
        answer those that await input, and end approvals (`resuming_step`). The run becomes QUEUED (event `run.resumed`) once none is
        pending (or what is, is settled by a message that is queued behind it), else it stays, with what is pending still. Raises NOT_FOUND, CONFLICT `run_not_waiting`, `approval_decided` or `approval_expired`, INVALID
        `tool_call_not_pending` (also for a call settled twice, or one that asks something else by now); then nothing was
        stored."""
        ...


# --- a claimed run: leases and the journal --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRun:
    """Everything a worker needs to go on: the run (already IN_PROGRESS), its agent at the version now in force, the
    thread's
    messages in order (superseded ones left out), and the calls of the last turn that have no result message yet."""

    lease: Lease
    run: Run
    agent: Agent
    transcript: tuple[Message, ...]
    open_calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAtClaim:
    """The run was not to be executed any more: claiming it ended it. `promoted` is the thread's next run."""

    run: Run
    promoted: RunId | None


class RunLeases(Protocol):
    """Who executes a run. A lease lapses by itself when it is not renewed."""

    async def claim(
        self, run_id: RunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedRun | EndedAtClaim | None:
        """Take a QUEUED run whose thread is not in quarantine and has no active run and no other queued run that goes before it.

        Of a thread's queued runs one that was begun (resumed, handed back, recovered) goes before those that were not,
        then the earlier `created_at`, then the smaller id.
        Stores the lease, the new epoch and attempt, and `claiming_step` of the run, in one transaction. A run that is not
        to go on ends instead, by `ending_at_claim` (EndedAtClaim). The agent is read at its newest version, which becomes the run's
        `agent_version`; a deleted agent counts at its last version. None if the run is not to be had now.
        """
        ...

    async def renew(
        self, worker_id: WorkerId, leases: tuple[Lease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[RunId]:
        """Extend all leases in one statement; returns the runs whose lease is lost (or over, the run having ended)."""
        ...

    async def hand_back(self, lease: Lease, *, active_s: float, at: datetime) -> bool:
        """Return the run to QUEUED for another worker, with `active_s` as its active time so far, all attempts
        together; `lapses` stays as it is. False if the lease was lost."""
        ...

    async def recoverable(self, *, at: datetime, limit: int) -> tuple[RunId, ...]:
        """Runs to submit again: first those in progress whose lease has lapsed at `at`, which are put back to QUEUED by
        this call (fencing their former worker, and counted in `lapses`), then queued ones that may be claimed; oldest first, `limit` in all."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """`last_seq` after the step; `promoted` is the thread's next queued run when this step freed the thread. `ending` is the
    further step that ended the run in the same transaction, because it was not to wait."""

    last_seq: int
    promoted: RunId | None = None
    ending: Step | None = None


class LeaseLost(Exception):
    """Another worker has the run now, or it was cancelled from outside: this worker must write nothing more."""

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"the lease on {run_id} is lost")
        self.run_id = run_id


class RunJournal(Protocol):
    """Writing into a claimed run. Every call is one transaction, checked against the lease's epoch; followers of the
    run are woken after the commit (events topic; status topic too when the run ended or waits).

    A lease gives the right to write while the run is IN_PROGRESS: the step that suspends or ends it ends the lease.
    """

    async def commit(self, lease: Lease, step: Step) -> StepOutcome:
        """Store a step. Raises LeaseLost, and ValueError for a change or settlement of a call that is not recorded or
        settled already; then nothing was stored. A run that begins to wait although it was asked to stop, or for displayed
        calls only while the thread's next message is queued behind it, ends in the same transaction
        (`step_instead_of_waiting`), since nobody would see to it any more."""
        ...

    async def append(self, lease: Lease, events: tuple[NewEvent, ...]) -> None:
        """Store events alone (deltas, progress). Raises LeaseLost."""
        ...

    async def cancel_requested_by(self, lease: Lease) -> str | None:
        """Who asked the run to stop (a key's id), or None. `system` when the lease is lost."""
        ...


# --- doorbells -------------------------------------------------------------------------------------------------------


class RunQueue(Protocol):
    """Says "execute run X" at least once to some worker; whoever claims the run decides."""

    async def submit(self, *run_ids: RunId) -> None:
        """Ring for the runs. Does not raise: what could not be rung for is found by the sweep."""
        ...


def events_topic(run_id: RunId) -> str:
    """Woken at every new event of the run."""
    return f"run.events:{run_id}"


def status_topic(run_id: RunId) -> str:
    """Woken when the run ends or begins to wait for somebody."""
    return f"run.status:{run_id}"


def control_topic(run_id: RunId) -> str:
    """Woken when the run is asked to stop."""
    return f"run.control:{run_id}"
