"""Effects of a new run on the unfinished runs of its thread."""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.errors import ServiceError, conflict, not_found
from domain.ids import RunId, ThreadId
from domain.runs.change import RunChange, RunFacts
from domain.runs.closing import displayed_step, lacks_display_only, waits_for_display_only
from domain.runs.resuming import resumed_step
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.step import Step
from domain.runs.stopping import Cancellation, run_not_yours
from domain.teams import Teams, may_use, sees
from domain.threads.thread import thread_quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFacts:
    """A locked thread: the run that quarantined it, if any, and its first unfinished runs, as many
    as `MultitaskStrategy.looks_at`. `newest` is its newest run; only a retry needs it."""

    quarantined_by: RunId | None
    unfinished: tuple[RunFacts, ...]
    newest: RunId | None = None


def team_of_thread(thread_id: ThreadId, owner: str | None, of_agent: str | None, *, visible: Teams) -> str | None:
    """The team of a thread once a run of an agent has started on it: a thread without one gets the
    agent's.

    Raises NOT_FOUND for a thread that the caller does not see, CONFLICT `thread_of_another_team`.
    """
    if not sees(visible, owner):
        raise not_found("thread", thread_id)
    if owner is not None and not may_use(owner, of_agent):
        raise conflict("thread_of_another_team", f"The thread {thread_id} and the agent belong to different teams.")
    return owner or of_agent


def make_room(
    new: Run, strategy: MultitaskStrategy, thread: ThreadFacts, *, may_stop_any: bool
) -> tuple[RunChange, ...]:
    """The changes of unfinished runs with which `new` starts.

    - A retry continues the thread's newest run, and no other.
    - A run that waits only for displayed calls completes: the new message settles them (D5).
    - ENQUEUE: a run with executable calls besides displayed ones is resumed; it completes after
      them.
    - REJECT: any other unfinished run rejects the new one.
    - INTERRUPT: all others are stopped by the new run's requester. ROLLBACK: their messages are
      also superseded.
    - Without `may_stop_any`, the requester stops its own runs only; a run of another requester
      rejects the new one.

    Raises CONFLICT `thread_quarantined`, `run_not_newest`, `thread_busy` (extra `run_id`),
    FORBIDDEN `run_not_yours`.
    """
    if thread.quarantined_by is not None:
        raise thread_quarantined(new.thread_id, thread.quarantined_by)
    if new.retry_of is not None and new.retry_of != thread.newest:
        raise _not_newest(new.retry_of, thread.newest)
    changes: list[RunChange] = []
    others: list[RunFacts] = []
    for facts in thread.unfinished:
        step = _moved_on(facts, strategy, new.created_at)
        if step is None:
            others.append(facts)
        else:
            changes.append(RunChange(run=facts.run, step=step))
    if others and strategy is MultitaskStrategy.REJECT:
        raise thread_busy(others[0].run.id, others[0].run.status)
    if strategy.stops_others:
        if not may_stop_any and any(facts.run.requested_by != new.requested_by for facts in others):
            raise run_not_yours()
        stop = Cancellation(actor=new.requested_by or "system", at=new.created_at)
        stopped = [change for facts in others if (change := stop.decide(facts)) is not None]
        rolls_back = strategy is MultitaskStrategy.ROLLBACK
        changes += (replace(change, rolls_back=rolls_back) for change in stopped)
    return tuple(changes)


def thread_busy(run_id: RunId, status: RunStatus) -> ServiceError:
    return conflict("thread_busy", f"Run {run_id} on this thread is {status}.", run_id=run_id)


def _not_newest(run_id: RunId, newest: RunId | None) -> ServiceError:
    detail = f"Run {run_id} is not the newest of its thread, which has moved on to {newest}. Start a new run instead."
    return conflict("run_not_newest", detail, run_id=newest or "")


def _moved_on(facts: RunFacts, strategy: MultitaskStrategy, at: datetime) -> Step | None:
    """The step of a suspended run that the new message resumes or completes."""
    if facts.run.status is not RunStatus.REQUIRES_ACTION:
        return None
    if waits_for_display_only(facts.open_calls):
        return displayed_step(facts.run, facts.open_calls, at=at)
    if strategy is MultitaskStrategy.ENQUEUE and lacks_display_only(facts.open_calls):
        return resumed_step(facts.run, at=at)
    return None
