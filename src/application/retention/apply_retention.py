"""ApplyRetention: remove an organization's data that has passed its retention period."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from application.audit.ports import AuditLog
from application.audit.prune_audit import PruneAudit, PruneAuditCommand
from application.retention.archive_thread import ArchiveThread
from application.retention.ports import Removed, RetentionStore, ThreadPlace
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError, is_storage_away
from domain.ids import AuditEventId, OrganizationId, ThreadId

logger = logging.getLogger(__name__)

STRETCH = 200
"""Threads per query."""
WORKFLOW_RUNS = 20
"""Workflow runs per transaction."""
NOTICES = 200
"""Notices per transaction."""
_NOT_WRITTEN = "archive_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRetentionCommand:
    organization_id: OrganizationId
    retention_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionApplied:
    """What was removed: threads with their content, workflow runs, and audit entries."""

    threads: int
    runs: int
    messages: int
    sources: int
    workflow_runs: int
    audit_events: int

    @property
    def nothing(self) -> bool:
        removed = (self.threads, self.runs, self.messages, self.sources, self.workflow_runs, self.audit_events)
        return not any(removed)


class ApplyRetention:
    """Rules:
    - A thread is removed after `retention_days` without activity, with its runs, messages, events,
      calls, approvals and sources. A thread with an unfinished run, or in quarantine, stays.
    - A workflow run is removed `retention_days` after its end, with its outputs. The runs of its
      agents are removed with their threads.
    - Notices to the webhook of the inbox are removed with their run, workflow run or MCP server,
      and those of gateway sessions after `retention_days`. They are not counted.
    - With an archive, a thread's runs are written there before anything of it is removed. If they
      cannot be written, it stays, and so do the threads after it. If they cannot be read, it stays
      alone.
    - The audit trail is pruned by whole days (UTC). Otherwise every sweep would prune the record of
      the previous pruning. Where it is stored by months, it is pruned by whole months.
    - Usage sums stay.
    - Threads are removed in steps, oldest data first, one transaction each, so that others can
      write. If a thread becomes active meanwhile, the rest of it stays.
    - The removal is audited once as `retention.applied`, also if a step failed.
    - A broken audit chain is not pruned, nor is one that cannot be written to the archive.
    """

    def __init__(
        self,
        *,
        retention: RetentionStore,
        prune_audit: PruneAudit,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
        archive_thread: ArchiveThread | None = None,
        audit_by_months: bool = False,
        stretch: int = STRETCH,
    ) -> None:
        self._retention = retention
        self._prune_audit = prune_audit
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids
        self._archive_thread = archive_thread
        self._audit_by_months = audit_by_months
        self._stretch = stretch

    async def execute(self, command: ApplyRetentionCommand) -> RetentionApplied:
        before = self._clock.now() - timedelta(days=command.retention_days)
        tally = _Tally()
        try:
            await self._remove_archived_threads(command.organization_id, before, tally)
            await self._remove_workflow_runs(command.organization_id, before, tally)
            await self._remove_notices(command.organization_id, before)
            tally.audit_events = await self._prune(command.organization_id, before)
        finally:
            applied = tally.applied()
            if not applied.nothing:
                await self._audit_log.record(self._entry(command, before, applied))
        return applied

    async def _remove_archived_threads(
        self, organization_id: OrganizationId, before: datetime, tally: "_Tally"
    ) -> None:
        try:
            await self._remove_threads(organization_id, before, tally)
        except ServiceError as error:
            if error.code != _NOT_WRITTEN:
                raise
            logger.error("%s", error.detail, extra={"organization_id": organization_id})

    async def _remove_threads(self, organization_id: OrganizationId, before: datetime, tally: "_Tally") -> None:
        place: ThreadPlace | None = None
        while True:
            stretch = await self._retention.idle_threads(organization_id, before, after=place, limit=self._stretch)
            for thread_id in stretch.found:
                if not await self._is_archived(organization_id, thread_id):
                    continue
                more = True
                while more:
                    step = await self._retention.remove(organization_id, thread_id, before)
                    tally.removed += step
                    more = step.more
            place = stretch.next
            if place is None:
                return

    async def _is_archived(self, organization_id: OrganizationId, thread_id: ThreadId) -> bool:
        if self._archive_thread is None:
            return True
        try:
            await self._archive_thread.execute(organization_id, thread_id)
        except Exception as error:
            if isinstance(error, ServiceError) and (is_storage_away(error) or error.code == _NOT_WRITTEN):
                raise
            told = {"organization_id": organization_id, "thread_id": thread_id}
            logger.exception("a thread that cannot be archived stays", extra=told)
            return False
        return True

    async def _remove_workflow_runs(self, organization_id: OrganizationId, before: datetime, tally: "_Tally") -> None:
        removed = WORKFLOW_RUNS
        while removed == WORKFLOW_RUNS:
            removed = await self._retention.remove_workflow_runs(organization_id, before, limit=WORKFLOW_RUNS)
            tally.workflow_runs += removed

    async def _remove_notices(self, organization_id: OrganizationId, before: datetime) -> None:
        while await self._retention.remove_notices(organization_id, before, limit=NOTICES) == NOTICES:
            pass

    async def _prune(self, organization_id: OrganizationId, before: datetime) -> int:
        day = before.replace(hour=0, minute=0, second=0, microsecond=0)
        first = day.replace(day=1) if self._audit_by_months else day
        try:
            return await self._prune_audit.execute(PruneAuditCommand(organization_id=organization_id, before=first))
        except ServiceError as error:
            if error.kind is not ErrorKind.CONFLICT and error.code != _NOT_WRITTEN:
                raise
            logger.error("%s", error.detail, extra={"organization_id": organization_id})
            return 0

    def _entry(self, command: ApplyRetentionCommand, before: datetime, applied: RetentionApplied) -> AuditEvent:
        return AuditEvent(
            id=AuditEventId(self._ids.new("aud")),
            organization_id=command.organization_id,
            action=AuditAction.RETENTION_APPLIED,
            actor="system",
            resource=command.organization_id,
            at=self._clock.now(),
            details={
                "retention_days": command.retention_days,
                "before": before.isoformat(),
                "threads": applied.threads,
                "runs": applied.runs,
                "messages": applied.messages,
                "sources": applied.sources,
                "workflow_runs": applied.workflow_runs,
                "audit_events": applied.audit_events,
            },
        )


@dataclass(slots=True)
class _Tally:
    removed: Removed = Removed()
    workflow_runs: int = 0
    audit_events: int = 0

    def applied(self) -> RetentionApplied:
        removed = self.removed
        return RetentionApplied(
            threads=removed.threads,
            runs=removed.runs,
            messages=removed.messages,
            sources=removed.sources,
            workflow_runs=self.workflow_runs,
            audit_events=self.audit_events,
        )
