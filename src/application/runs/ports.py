"""Ports of the runs slice: stored runs, the journal of a claimed run, leases, the queue."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from application.runs.new_run import IdempotencyKey, NewRun, StartedRun
from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.ids import AgentId, OrganizationId, RunId, ThreadId, WorkerId
from domain.runs.change import Decide
from domain.runs.claiming import Suspected
from domain.runs.events import NewEvent, RunEvent
from domain.runs.lease import Lease
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.runs.step import Step
from domain.teams import Teams
from domain.threads.message import Message
from domain.threads.thread import Thread

# --- stored runs, as the API side sees them ------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Conditions that must all hold; None does not restrict.

    - `text` is in the run's input or output; upper and lower case of ASCII letters are the same, of
      others where the database knows them.
    - `tool` is the name of a tool that it called, `error` the code of its error, `metadata` a name
      and its value as text.
    - `statuses`: one of these.
    - Created from `since` on and before `until`; ended, otherwise begun or created, after
      `changed_since`.
    - With `text`, `tool` or `metadata`: among the organization's `SEARCHED` newest runs (before
      `until`).
    - With `is_walked`, a page has what is found among the next `SEARCHED` runs of the organization.
      It may have fewer runs than its limit, or none, and a cursor to search on with.
    """

    thread_id: ThreadId | None = None
    agent_id: AgentId | None = None
    status: RunStatus | None = None
    history_key: str | None = None
    text: str | None = None
    model: str | None = None
    tool: str | None = None
    error: str | None = None
    started_by: str | None = None
    metadata: tuple[str, str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    statuses: frozenset[RunStatus] = frozenset()
    changed_since: datetime | None = None

    @property
    def all_statuses(self) -> frozenset[RunStatus]:
        return self.statuses if self.status is None else self.statuses | {self.status}

    @property
    def are_unfinished(self) -> bool:
        """Whether only unfinished runs are wanted, which are few."""
        return bool(self.all_statuses) and not any(status.is_terminal for status in self.all_statuses)

    @property
    def is_walked(self) -> bool:
        """Whether no index has all conditions, so that any number of runs may not meet them: those
        of a model, those of a starter with others, and those of an error with an agent or without
        the status that has errors."""
        searches = (self.text, self.tool, self.metadata)
        if self.are_unfinished or any(each is not None for each in (self.thread_id, self.history_key, *searches)):
            return False
        statuses = self.all_statuses
        of_starter = self.started_by is not None and any((self.agent_id, self.error, *statuses))
        is_rare = self.agent_id is not None or (bool(statuses) and RunStatus.FAILED not in statuses)
        return self.model is not None or of_starter or (self.error is not None and is_rare)


class RunOrder(StrEnum):
    """Orders of runs; the values are public. Those by figures begin with the largest, and have the
    `SEARCHED` newest runs of the organization (before `until`): no index has them. Equal ones are
    ordered by id."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LONGEST = "longest"
    COSTLIEST = "costliest"
    MOST_TOKENS = "most_tokens"

    @property
    def is_by_figure(self) -> bool:
        return self in (RunOrder.LONGEST, RunOrder.COSTLIEST, RunOrder.MOST_TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRuns:
    """A page of runs, and how many there are on all pages."""

    page: Page[Run]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRun:
    """A run after a decision. `promoted` is the thread's next queued run if the change freed the
    thread."""

    run: Run
    promoted: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A run and its messages in order, read at one moment, without the provider's items."""

    run: Run
    messages: tuple[Message, ...]

    @property
    def team(self) -> str | None:
        return self.run.team


class RunReader(Protocol):
    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None: ...

    async def page(
        self,
        organization_id: OrganizationId,
        wanted: RunFilter,
        request: PageRequest,
        order: RunOrder = RunOrder.NEWEST,
    ) -> Page[Run]:
        """Runs in this order. A cursor continues a page of the same order."""

    async def count(self, organization_id: OrganizationId, wanted: RunFilter, *, most: int, teams: Teams = None) -> int:
        """How many runs there are, at most `most`; of those that teams own, only those of `teams`.
        Where a list of them `is_walked`: among the `SEARCHED` newest runs of the organization
        (before `until`)."""

    async def by_change(self, organization_id: OrganizationId, wanted: RunFilter, request: PageRequest) -> CountedRuns:
        """Runs by when they ended, otherwise began or were created; newest first. They are among
        the `SEARCHED` newest runs of the organization."""

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None: ...

    async def tool_calls(self, organization_id: OrganizationId, run_id: RunId) -> tuple[ToolCall, ...]:
        """The run's ledger entries, in order."""

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        """Events with a higher seq, in order. Large messages may end the page before its limit;
        `last_seq` of the run tells whether more follow."""


class RunStore(Protocol):
    """Changes of runs by the API. The store locks, loads the facts, calls the decision, and stores
    the result in one transaction. It never writes into a claimed run, except for the request to
    stop.

    Above: the use cases, with pure decisions (`domain.runs`). Below: `SqlRunStore`, and the
    in-memory store of tests. After each commit, subscribers of every changed run are notified as
    by RunJournal; a request to stop signals the control topic.
    """

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED with its first event, and the changes of `new.decide` to the
        thread's unfinished runs.

        An idempotency key that names an earlier run (`named_run`) returns that run, and nothing is
        stored. A `firing` advances its schedule with an audit entry `schedule.fired`. Raises what
        `new.decide` and `named_run` raise, NOT_FOUND without the thread, CONFLICT `schedule_moved`
        if the schedule is not at the firing's version and time, LIMIT `queue_full`
        (`require_place`) beyond `new.admission`, counted over all processes; then nothing is
        stored.
        """

    async def started_before(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        """The run that the key names now (`named_run`), or None. Changes nothing; `start` checks
        again."""

    async def change(self, organization_id: OrganizationId, run_id: RunId, decide: Decide) -> ChangedRun | None:
        """Store the decision about a run, and return the changed run; None if there is no such run.
        Raises what `decide` raises; then nothing is stored.
        """


# --- a claimed run: leases and the journal -------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRun:
    """Everything that a worker needs to continue: the run (already IN_PROGRESS), its agent at the
    present version, the thread's messages in order (without superseded ones) with the provider's
    items, and the calls of the last turn without a result message."""

    lease: Lease
    run: Run
    agent: Agent
    transcript: tuple[Message, ...]
    open_calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAtClaim:
    """The run must not be executed: the claim ended it. `promoted` is the thread's next run."""

    run: Run
    promoted: RunId | None


class RunLeases(Protocol):
    """Leases of runs. A lease expires when it is not renewed."""

    async def claim(
        self, run_id: RunId, worker_id: WorkerId, *, lease_s: float, at: datetime, takes_suspects: bool = True
    ) -> ClaimedRun | EndedAtClaim | Suspected | None:
        """Store the result of `decide_claim`: a lease with a new epoch and the agent's newest
        version (the last one of a deleted agent), or the run's end (EndedAtClaim). None if the run
        cannot be claimed now; Suspected without `takes_suspects`, for a suspected run. Nor can a
        run be claimed while its organization or agent has `max_running` runs in progress, counted
        over all processes.

        Order of a thread's queued runs: started runs (resumed, handed back, recovered) first,
        then by `created_at`, then by id.
        """

    async def renew(
        self, worker_id: WorkerId, leases: tuple[Lease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[RunId]:
        """Extend all leases in one statement. Returns the runs whose lease is lost or whose run has
        ended."""

    async def hand_back(self, lease: Lease, *, active_s: float, at: datetime) -> bool:
        """Return the run to QUEUED for another worker. `active_s` is its active time in all
        attempts; `lapses` stays unchanged. False if the lease was lost."""

    async def take_back(self, lease: Lease, *, seen_seq: int) -> bool:
        """Return the run to QUEUED for another worker, though its worker does not give it up. False
        if the lease was lost, or the run has an event after `seen_seq`."""

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[RunId, ...]:
        """Runs to submit again, oldest first, at most `limit`. First runs in progress whose lease
        has expired at `at`: they return to QUEUED with a new epoch, and one more of `lapses` where
        the lost worker is `attributed` to them. Then claimable queued runs, organizations in turn
        and in each its agents. Among each of both, runs with fewer lapses come first. For the
        `sole_owner` of the database every lease has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """`last_seq` after the step. `promoted` is the thread's next queued run if this step freed the
    thread. `ending` is a further step that ended the run in the same transaction, because it
    must not wait. `has_announced`: deliveries of webhooks were stored with it."""

    last_seq: int
    promoted: RunId | None = None
    ending: Step | None = None
    has_announced: bool = False


class LeaseLost(Exception):
    """Another worker has the run, or it was ended from outside: this worker must write nothing
    more."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"the lease on {run_id} is lost")
        self.run_id = run_id


class AccountConsents(Protocol):
    async def began_to_wait(self, run: Run, since: datetime) -> None:
        """Continue the run if an account that it waits for was connected after `since`, before its
        wait was stored."""
        ...


class RunJournal(Protocol):
    """Writes of a claimed run. Every call is one transaction, checked against the lease's epoch.
    Subscribers are notified after the commit: the events topic, and the status topic when the
    run ended or waits.

    A lease is valid while the run is IN_PROGRESS: the step that suspends or ends the run ends the
    lease.
    """

    async def commit(self, lease: Lease, step: Step) -> StepOutcome:
        """Store a step, with the provider's items of its messages. Raises LeaseLost, and ValueError
        for a change or outcome of a call that is not recorded or already settled; then nothing is
        stored. A run that would wait without need ends in the same transaction
        (`step_instead_of_waiting`)."""

    async def append(self, lease: Lease, events: tuple[NewEvent, ...]) -> None:
        """Store only events (deltas, progress). Raises LeaseLost."""

    async def cancel_requested_by(self, lease: Lease) -> str | None:
        """The key that requested the stop, or None. `system` when the lease is lost."""


# --- signals -------------------------------------------------------------------------------------


class RunQueue(Protocol):
    """Signals at least once to some worker that a run is ready. The claim decides which worker
    executes it."""

    async def submit(self, *run_ids: RunId) -> None:
        """Signal the runs. Does not raise: the periodic task finds runs without a signal."""


def events_topic(run_id: RunId) -> str:
    """Signalled at every new event of the run."""
    return f"run.events:{run_id}"


def status_topic(run_id: RunId) -> str:
    """Signalled when the run ends or is suspended."""
    return f"run.status:{run_id}"


def control_topic(run_id: RunId) -> str:
    """Signalled when the run is requested to stop."""
    return f"run.control:{run_id}"


class StoredThreads(Protocol):
    async def get(self, organization_id: OrganizationId, thread_id: ThreadId) -> Thread | None: ...
