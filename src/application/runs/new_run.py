"""A run that is to be stored, and what its start changes."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

from domain.copies import with_changes
from domain.ids import RunId
from domain.runs.admission import Admission
from domain.runs.change import RunChange
from domain.runs.events import NewEvent
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.run_events import run_queued
from domain.runs.starting import ThreadFacts, make_room, team_of_thread
from domain.schedules.firing import Firing
from domain.teams import Teams
from domain.threads.message import Message
from domain.threads.thread import Thread

KEY_LIFETIME = timedelta(hours=24)
"""How long an idempotency key names its run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A client's key for one creation: the same key with the same `body_digest` gives the same
    run."""

    key: str
    body_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be stored, with its thread if that is new. `firing` is the trigger of a schedule,
    which has no key. `may_stop_any` is the right to stop runs of other requesters on the thread.
    `visible` are the teams whose threads the requester sees. `admission` bounds the queued runs.
    `history` are the messages of the new thread. `webhook_url` is stored encrypted, and never read
    with the run; a retry has that of the failed run."""

    run: Run
    new_thread: Thread | None
    strategy: MultitaskStrategy
    idempotency: IdempotencyKey | None
    firing: Firing | None = None
    may_stop_any: bool = False
    visible: Teams = None
    admission: Admission = Admission()
    history: tuple[Message, ...] = ()
    webhook_url: str | None = field(default=None, repr=False)

    def on_thread_of(self, owner: str | None) -> "NewRun":
        """For the stored thread of this team, as `team_of_thread`, which may refuse it. The run has
        come with its agent's team."""
        team = team_of_thread(self.run.thread_id, owner, self.run.team, visible=self.visible)
        return self if team == self.run.team else replace(self, run=with_changes(self.run, team=team))

    @property
    def event(self) -> NewEvent:
        return run_queued(self.run, at=self.run.created_at)

    def decide(self, thread: ThreadFacts) -> tuple[RunChange, ...]:
        """The changes of the thread's unfinished runs (`make_room`)."""
        return make_room(self.run, self.strategy, thread, may_stop_any=self.may_stop_any)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRun:
    """The result of a start.

    - `created` is False if an idempotency key named an earlier run.
    - `interrupted` runs are requested to stop. `ended` runs ended with this start: completed by
      the new message, or stopped without a worker.
    - `promoted` is an earlier queued run that can be claimed now.
    - `submitted`: a queue in the same database got both runs in the same transaction, or one in the
      same process after it.
    """

    run: Run
    created: bool
    interrupted: tuple[RunId, ...] = ()
    ended: tuple[Run, ...] = ()
    promoted: RunId | None = None
    submitted: bool = False

    @classmethod
    def after(cls, run: Run, changed: tuple[Run, ...], *, first: RunId | None) -> "StartedRun":
        """A new run, the runs that its start changed, and the run of the thread that may be claimed
        now."""
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
        """Claimable runs that the queue does not know."""
        if self.submitted:
            return ()
        created = (self.run.id,) if self.created else ()
        return created if self.promoted is None else (*created, self.promoted)
