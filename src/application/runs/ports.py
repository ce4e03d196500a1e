"""Ports of the runs slice: stored runs, the journal of a claimed run, leases, the queue, wake-ups."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.ids import AgentId, OrganizationId, RunId, ThreadId, WorkerId
from domain.runs.change import Decide, RunChange
from domain.runs.events import NewEvent, RunEvent
from domain.runs.lease import Lease
from domain.runs.ledger import ToolCall
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.run_events import run_queued
from domain.runs.starting import ThreadFacts, make_room
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

    @property
    def event(self) -> NewEvent:
        """The run's first event."""
        return run_queued(self.run, at=self.run.created_at)

    def decide(self, thread: ThreadFacts) -> tuple[RunChange, ...]:
        """The changes to the thread's unfinished runs (`make_room`)."""
        return make_room(self.run, self.strategy, thread)


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

    @classmethod
    def after(cls, run: Run, changed: tuple[Run, ...], *, first: RunId | None) -> "StartedRun":
        """A new run, the runs that its start changed, and the run of the thread that may be claimed now."""
        stops = (RunStatus.IN_PROGRESS, RunStatus.CANCELLED)
        return cls(
            run=run,
            created=True,
            interrupted=tuple(other.id for other in changed if other.status in stops),
            ended=tuple(other for other in changed if other.status.is_terminal),
            promoted=first if changed and first != run.id else None,
        )

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
class ChangedRun:
    """A run after a decision about it. `promoted` is the thread's next queued run if the change freed the thread."""

    run: Run
    promoted: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A run and the messages it wrote, in order, as they stood at one moment."""

    run: Run
    messages: tuple[Message, ...]


class RunReader(Protocol):
    """Stored runs, read."""

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""
        ...

    async def page(self, organization_id: OrganizationId, wanted: RunFilter, request: PageRequest) -> Page[Run]:
        """Runs, newest first."""
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


class RunStore(Protocol):
    """Runs as the API changes them: the store locks, loads what a decision needs, calls it, and stores the result in one
    transaction. It never writes into a claimed run, except for the request to stop.

    Above: the use cases, whose decisions are pure (`domain.runs`). Below: `SqlRunStore`, and the in-memory store of tests.
    After each commit the followers of every changed run are woken, as by RunJournal; of a run asked to stop, the control
    topic.
    """

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED with its first event, and what `new.decide` changes of the thread's unfinished runs.

        An idempotency key that names an earlier run (`named_run`) gives that run, and stores nothing. A `firing` moves its
        schedule on, naming the run, with an audit entry `schedule.fired`. Raises what `new.decide` and `named_run` raise,
        NOT_FOUND without the thread, CONFLICT `schedule_moved` if the schedule is no longer at the firing's version and time;
        then nothing was stored.
        """
        ...

    async def started_before(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        """The run that the key names (`named_run`), as it is now, or None; changes nothing. `start` looks again."""
        ...

    async def change(self, organization_id: OrganizationId, run_id: RunId, decide: Decide) -> ChangedRun | None:
        """Store what `decide` says about a run, and return the run as it is then; None if there is no such run. Raises what
        `decide` raises; then nothing was stored."""
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
        """Store what `decide_claim` says about a run: the claim with a lease, a new epoch and the agent's newest version (the
        last one of a deleted agent), or the run's end (EndedAtClaim). None if the run cannot be claimed now.

        Of a thread's queued runs, one that was begun (resumed, handed back, recovered) goes before those that were not, then
        the earlier `created_at`, then the smaller id.
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

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[RunId, ...]:
        """Runs to submit again: first those in progress whose lease has expired at `at`, which are put back to QUEUED by
        this call (fencing their former worker, and counted in `lapses`), then queued ones that may be claimed; oldest first,
        `limit` in all. For the `sole_owner` of the database every lease has expired."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """`last_seq` after the step; `promoted` is the thread's next queued run when this step freed the thread. `ending` is the
    further step that ended the run in the same transaction, because it was not to wait."""

    last_seq: int
    promoted: RunId | None = None
    ending: Step | None = None


class LeaseLost(Exception):
    """Another worker has the run now, or the run ended from outside: this worker must write nothing more."""

    def __init__(self, run_id: str) -> None:
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
