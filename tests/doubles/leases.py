"""Who executes a run, in memory."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter, itemgetter

from application.runs.ports import ClaimedRun, EndedAtClaim
from application.system.wakeups import Wakeups
from domain.ids import MessageId, RunId, WorkerId
from domain.runs.admission import has_place_of_caller
from domain.runs.claiming import REPLY_EVENTS, ClaimFacts, Suspected, abandoned_message, decide_claim
from domain.runs.lease import Lease
from domain.runs.ledger import ToolCallState
from domain.runs.lost_workers import LostRun, attributed
from domain.runs.run import Run, RunStatus
from tests.doubles.state import InMemoryState, StoredRun, wake_followers


class InMemoryRunLeases:
    """The `RunLeases` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def claim(
        self, run_id: RunId, worker_id: WorkerId, *, lease_s: float, at: datetime, takes_suspects: bool = True
    ) -> ClaimedRun | EndedAtClaim | Suspected | None:
        """Take a run that may be executed now."""
        stored = self._state.runs.get(run_id)
        if stored is None:
            return None
        agent = self._state.agents[stored.run.agent_id][-1]
        facts = ClaimFacts(
            run=stored.run,
            is_next=self._state.next_run(stored.run.thread_id) == run_id,
            agent_version=agent.version,
            takes_suspects=takes_suspects,
            open_calls=self._state.open_calls(stored),
            abandoned=_abandoned(stored),
        )
        step = decide_claim(facts, at=at)
        if step is None or isinstance(step, Suspected):
            return step
        if not step.run.status.is_terminal and not self._has_place(stored.run):
            return None
        outcome = self._state.apply(stored, step)
        wake_followers(self._wakeups, stored.run)
        if stored.run.status.is_terminal:
            return EndedAtClaim(run=stored.run, promoted=outcome.promoted)
        stored.held_by = worker_id
        stored.lease_until = at + timedelta(seconds=lease_s)
        run = stored.run
        return ClaimedRun(
            lease=Lease(run_id=run.id, organization_id=run.organization_id, thread_id=run.thread_id, epoch=run.epoch),
            run=run,
            agent=agent,
            transcript=self._state.threads[run.thread_id].transcript(),
            open_calls=facts.open_calls,
        )

    def _has_place(self, queued: Run) -> bool:
        organization = self._state.organizations.get(queued.organization_id)
        running = [other.run for other in self._state.runs.values() if other.run.status is RunStatus.IN_PROGRESS]
        of_organization = [run for run in running if run.organization_id == queued.organization_id]
        of_agent = [run for run in running if run.agent_id == queued.agent_id]
        bound = None if organization is None else organization.max_running
        of_its = self._state.agents[queued.agent_id][-1].config.max_running
        if has_place_of_caller(queued):
            return True
        return (bound is None or len(of_organization) < bound) and (of_its is None or len(of_agent) < of_its)

    async def renew(
        self, worker_id: WorkerId, leases: tuple[Lease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[RunId]:
        """Extend all leases; returns the runs whose lease is lost."""
        lost = set()
        for lease in leases:
            stored = self._state.held(lease)
            if stored is None or stored.held_by != worker_id:
                lost.add(lease.run_id)
            else:
                stored.lease_until = at + timedelta(seconds=lease_s)
        return frozenset(lost)

    async def hand_back(self, lease: Lease, *, active_s: float, at: datetime) -> bool:
        """Return the run to QUEUED for another worker."""
        stored = self._state.held(lease)
        if stored is None:
            return False
        stored.put_back()
        stored.run = replace(stored.run, active_s=active_s)
        return True

    async def take_back(self, lease: Lease, *, seen_seq: int) -> bool:
        """Return a run that has no newer event to QUEUED for another worker."""
        stored = self._state.held(lease)
        if stored is None or stored.run.last_seq != seen_seq:
            return False
        stored.put_back()
        return True

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[RunId, ...]:
        """Runs to submit again."""
        runs = sorted(self._state.runs.values(), key=lambda stored: (stored.run.created_at, stored.run.id))
        lapsed = [
            stored
            for stored in runs
            if stored.run.status is RunStatus.IN_PROGRESS
            and stored.lease_until is not None
            and (sole_owner or stored.lease_until <= at)
        ][:limit]
        suspects = attributed(
            LostRun(
                run_id=stored.run.id,
                worker_id=stored.held_by or WorkerId(""),
                suspect=stored.run.is_suspect,
                executing=any(call.state is ToolCallState.RECORDED for call in self._state.open_calls(stored)),
            )
            for stored in lapsed
        )
        lapsed = sorted(lapsed, key=lambda stored: stored.run.lapses)
        for stored in lapsed:
            stored.put_back(lapsed=True, counts=stored.run.id in suspects)
        put_back = [stored.run.id for stored in lapsed]
        claimable = [
            stored.run
            for stored in runs
            if stored.run.id not in put_back and self._state.next_run(stored.run.thread_id) == stored.run.id
        ]
        return tuple((*put_back, *_in_turns(claimable))[:limit])


def _in_turns(runs: list[Run]) -> list[RunId]:
    """Those of an organization's agents in turn, and of organizations in turn."""

    def by_turn(key: Callable[[Run], object], ordered: list[Run]) -> list[Run]:
        turns = Counter[object]()
        numbered = []
        for run in ordered:
            turns[key(run)] += 1
            numbered.append((turns[key(run)], run))
        return [run for _, run in sorted(numbered, key=itemgetter(0))]

    ordered = by_turn(lambda run: run.organization_id, by_turn(lambda run: run.agent_id, runs))
    return [run.id for run in sorted(ordered, key=attrgetter("lapses"))]


def _abandoned(stored: StoredRun) -> MessageId | None:
    newest = next((event for event in reversed(stored.events) if event.type in REPLY_EVENTS), None)
    return None if newest is None else abandoned_message(newest.type, newest.data)
