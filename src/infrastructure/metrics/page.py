"""The metrics as one page of text, with the current backlog."""

import asyncio
import logging

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from application.audit.ports import AuditForwards
from application.metrics.ports import Backlog, BacklogReader
from application.runs.execution.active_runs import ActiveRuns
from application.system.ports import Clock
from domain.errors import ServiceError
from domain.runs.lease import Lease
from domain.runs.run import TERMINAL_STATUSES, RunStatus
from domain.workflows.run import WorkflowRunStatus
from infrastructure.metrics.instruments import Instruments

logger = logging.getLogger(__name__)

FRESH_S = 1.0
"""The backlog is cached for this time."""
BACKLOG_TIMEOUT_S = 2.0


class PrometheusPage:
    """The `MetricsPage` port. Only reading the backlog can be slow, and its time is bounded."""

    def __init__(
        self,
        *,
        instruments: Instruments,
        backlog: BacklogReader,
        active_runs: ActiveRuns[Lease],
        unsent_audit: AuditForwards | None,
        clock: Clock,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._instruments = instruments
        self._backlog = backlog
        self._active_runs = active_runs
        self._unsent_audit = unsent_audit
        self._clock = clock
        self._fresh_s = fresh_s
        self._counting = asyncio.Lock()
        self._counted_at: float | None = None

    @property
    def media_type(self) -> str:
        # Litestar adds the charset.
        return CONTENT_TYPE_LATEST.replace("; charset=utf-8", "")

    async def render(self) -> bytes:
        """The page; without a database, only the metrics of this process."""
        await self.refresh()
        return generate_latest(self._instruments.registry)

    async def refresh(self) -> None:
        """Bring the gauges up to date."""
        async with self._counting:
            now = self._clock.monotonic()
            if self._counted_at is None or now - self._counted_at >= self._fresh_s:
                await self._count()
                self._counted_at = now
        self._instruments.runs_in_hand.set(self._active_runs.count)

    async def _count(self) -> None:
        gauges = self._instruments.backlog
        try:
            async with asyncio.timeout(BACKLOG_TIMEOUT_S):
                self._show(await self._backlog.read())
                await self._show_unsent()
        except (TimeoutError, ServiceError) as error:
            logger.warning("backlog could not be read", extra={"reason": type(error).__name__})
            gauges.readable.set(0)
        else:
            gauges.readable.set(1)

    async def _show_unsent(self) -> None:
        oldest = () if self._unsent_audit is None else await self._unsent_audit.unsent(1)
        lag_s = max([(self._clock.now() - each.since).total_seconds() for each in oldest], default=0.0)
        self._instruments.backlog.audit_lag.set(max(lag_s, 0.0))

    def _show(self, backlog: Backlog) -> None:
        gauges, now = self._instruments.backlog, self._clock.now()
        for status in RunStatus:
            if status not in TERMINAL_STATUSES:
                gauges.runs.labels(status.value).set(backlog.runs.get(status, 0))
        for of_workflow in WorkflowRunStatus:
            if not of_workflow.is_terminal:
                gauges.workflow_runs.labels(of_workflow.value).set(backlog.workflow_runs.get(of_workflow, 0))
        queued_at, delivery_at = backlog.oldest_queued_at, backlog.oldest_delivery_at
        gauges.queue_age.set(0 if queued_at is None else max((now - queued_at).total_seconds(), 0))
        gauges.approvals.set(backlog.pending_approvals)
        gauges.deliveries.set(backlog.open_deliveries)
        gauges.delivery_delay.set(0 if delivery_at is None else max((now - delivery_at).total_seconds(), 0))
