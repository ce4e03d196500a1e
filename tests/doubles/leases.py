"""Who executes a run, in memory."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

from application.runs.ports import ClaimedRun, EndedAtClaim
from application.system.wakeups import Wakeups
from domain.ids import MessageId, RunId, WorkerId
from domain.runs.claiming import REPLY_EVENTS, claiming_step, ending_at_claim
from domain.runs.events import RunEventType
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from tests.doubles.state import InMemoryState, StoredRun, wake_followers


class InMemoryRunLeases:
    """The `RunLeases` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def claim(
        self, run_id: RunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedRun | EndedAtClaim | None:
        """Take a run that may be executed now."""
        stored = self._state.runs.get(run_id)
        if stored is None or self._state.next_run(stored.run.thread_id) != run_id:
            return None
        open_calls = self._state.open_calls(stored)
        abandoned = _abandoned(stored)
        ending = ending_at_claim(stored.run, open_calls, at=at, abandoned=abandoned)
        if ending is not None:
            outcome = self._state.apply(stored, ending)
            wake_followers(self._wakeups, stored.run)
            return EndedAtClaim(run=stored.run, promoted=outcome.promoted)
        agent = self._state.agents[stored.run.agent_id][-1]
        run = replace(stored.run.claimed(at=at), agent_version=agent.version)
        self._state.apply(stored, claiming_step(run, open_calls, at=at, abandoned=abandoned))
        stored.held_by = worker_id
        stored.lease_until = at + timedelta(seconds=lease_s)
        wake_followers(self._wakeups, stored.run)
        return ClaimedRun(
            lease=Lease(run_id=run.id, organization_id=run.organization_id, thread_id=run.thread_id, epoch=run.epoch),
            run=stored.run,
            agent=agent,
            transcript=self._state.threads[run.thread_id].transcript(),
            open_calls=open_calls,
        )

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

    async def recoverable(self, *, at: datetime, limit: int) -> tuple[RunId, ...]:
        """Runs to submit again."""
        runs = sorted(self._state.runs.values(), key=lambda stored: (stored.run.created_at, stored.run.id))
        lapsed = [
            stored
            for stored in runs
            if stored.run.status is RunStatus.IN_PROGRESS
            and stored.lease_until is not None
            and stored.lease_until <= at
        ][:limit]
        for stored in lapsed:
            stored.put_back(lapsed=True)
        put_back = [stored.run.id for stored in lapsed]
        claimable = [
            stored.run.id
            for stored in runs
            if stored.run.id not in put_back and self._state.next_run(stored.run.thread_id) == stored.run.id
        ]
        return tuple((put_back + claimable)[:limit])


def _abandoned(stored: StoredRun) -> MessageId | None:
    """The message that a former worker was streaming when it vanished."""
    newest = next((event for event in reversed(stored.events) if event.type in REPLY_EVENTS), None)
    if newest is None or newest.type is not RunEventType.MESSAGE_DELTA:
        return None
    return MessageId(cast(str, newest.data["message_id"]))
