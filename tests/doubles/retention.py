"""What has outlived its time, taken away from memory."""

from datetime import datetime

from application.retention.ports import IdleThreads, Removed, ThreadPlace
from domain.ids import OrganizationId, ThreadId
from tests.doubles.state import InMemoryState, StoredThread


class InMemoryRetentionStore:
    """The `RetentionStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def idle_threads(
        self, organization_id: OrganizationId, before: datetime, *, after: ThreadPlace | None, limit: int
    ) -> IdleThreads:
        """Look through a stretch of threads."""
        behind = (
            (datetime.min.replace(tzinfo=before.tzinfo), "") if after is None else (after.created_at, after.thread_id)
        )
        old = sorted(
            (stored.thread.created_at, stored.thread.id)
            for stored in self._state.threads.values()
            if stored.thread.organization_id == organization_id and stored.thread.created_at < before
        )
        stretch = [place for place in old if place > behind][:limit]
        last = stretch[-1] if len(stretch) == limit else None
        return IdleThreads(
            found=tuple(id_ for _, id_ in stretch if self._is_idle(self._state.threads[id_], before)),
            next=None if last is None else ThreadPlace(created_at=last[0], thread_id=last[1]),
        )

    async def remove(self, organization_id: OrganizationId, thread_id: ThreadId, before: datetime) -> Removed:
        """Take a part of an idle thread away."""
        state = self._state
        stored = state.thread_of(organization_id, thread_id)
        if stored is None or not self._is_idle(stored, before):
            return Removed()
        sources = [id_ for id_, kept in state.sources.items() if kept.source.thread_id == thread_id]
        if sources:
            for source_id in sources:
                del state.sources[source_id]
            return Removed(sources=len(sources), more=True)
        runs = sorted(
            (kept.run.created_at, kept.run.id) for kept in state.runs.values() if kept.run.thread_id == thread_id
        )
        if not runs:
            del state.threads[thread_id]
            return Removed(threads=1, messages=len(stored.messages))
        run_id = runs[0][1]
        kept_messages = [message for message in stored.messages if message.run_id != run_id]
        removed = Removed(runs=1, messages=len(stored.messages) - len(kept_messages), more=True)
        stored.messages = kept_messages
        stored.superseded_runs.discard(run_id)
        del state.runs[run_id]
        state.reservations.pop(run_id, None)
        state.deliveries = {id_: new for id_, new in state.deliveries.items() if new.delivery.run_id != run_id}
        state.approvals = {id_: known for id_, known in state.approvals.items() if known.run_id != run_id}
        state.used_keys = {key: used for key, used in state.used_keys.items() if used.run_id != run_id}
        return removed

    async def remove_workflow_runs(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Take workflow runs away, and deleted workflows that have none left."""
        state = self._state
        runs = [kept.run for kept in state.workflow_runs.values() if kept.run.organization_id == organization_id]
        old = sorted(
            (run.created_at, run.id) for run in runs if run.finished_at is not None and run.finished_at < before
        )[:limit]
        for _, run_id in old:
            del state.workflow_runs[run_id]
        if len(old) < limit:
            self._forget_unused_workflows(organization_id, before)
        return len(old)

    async def remove_notices(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """The tables in memory have no notices."""
        return 0

    def _forget_unused_workflows(self, organization_id: OrganizationId, before: datetime) -> None:
        state = self._state
        used = {kept.run.workflow_id for kept in state.workflow_runs.values()}
        for workflow_id, deleted_at in tuple(state.deleted_workflows.items()):
            ours = state.workflows[workflow_id][-1].organization_id == organization_id
            if ours and deleted_at < before and workflow_id not in used:
                del state.deleted_workflows[workflow_id]
                del state.workflows[workflow_id]

    async def forget_idempotency_keys(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Forget keys that were used at that moment or before."""
        used_keys = self._state.used_keys
        old = [place for place, used in used_keys.items() if place[0] == organization_id and used.used_at <= before][
            :limit
        ]
        for place in old:
            del used_keys[place]
        keyed = [
            kept
            for kept in self._state.workflow_runs.values()
            if kept.key is not None and kept.run.organization_id == organization_id and kept.run.created_at <= before
        ][: limit - len(old)]
        for kept in keyed:
            kept.key = None
        return len(old) + len(keyed)

    async def forget_authorizations(self, before: datetime, *, limit: int) -> int:
        """Forget authorizations that have expired."""
        authorizations = self._state.authorizations
        expired = [key for key, pending in authorizations.items() if pending.expires_at < before][:limit]
        for key in expired:
            del authorizations[key]
        return len(expired)

    def _is_idle(self, stored: StoredThread, before: datetime) -> bool:
        state, thread = self._state, stored.thread
        moments = [thread.created_at]
        moments += [message.created_at for message in stored.messages[-1:]]
        moments += [kept.source.created_at for kept in state.sources.values() if kept.source.thread_id == thread.id]
        for kept in state.runs.values():
            if kept.run.thread_id == thread.id:
                moments += [kept.run.created_at, kept.run.finished_at or kept.run.created_at]
        for session in (
            kept.session for kept in state.gateway_sessions.values() if kept.session.thread_id == thread.id
        ):
            moments.append(session.revoked_at or session.expires_at)
        return thread.quarantine is None and not state.unfinished(thread.id) and all(one < before for one in moments)
