"""The retention sweep: removes expired data of all organizations periodically."""

import logging
from collections.abc import Coroutine
from datetime import timedelta

from application.identity.ports import OrganizationStore
from application.retention.apply_retention import ApplyRetention, ApplyRetentionCommand
from application.retention.maintain_months import MaintainMonths
from application.retention.ports import ArchiveDrafts, ExpiringTools, FreeSpace, RetentionStore, SweepLock
from application.runs.new_run import KEY_LIFETIME
from application.system.pages import PageRequest
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.organization import Organization

logger = logging.getLogger(__name__)

FIRST_AFTER_S = 5.0
SWEEP_EVERY_S = 3_600.0
JITTER = 0.2
"""The largest random extension of these periods, as a fraction, so that processes do not run
together."""
BATCH = 500
ORGANIZATIONS = 100
BROKEN_OFF = timedelta(hours=1)
"""The writer of a file of the archive that was not continued for so long has ended."""


class RetentionSweep:
    """Rules:
    - One process sweeps at a time; another one skips its sweep.
    - A failure for one organization does not stop the others; the next sweep retries.
    - Organizations without `retention_days` keep their threads.
    - Idempotency keys older than a day, expired authorizations and bound values of expired tools of
      workflow runs are removed everywhere.
    - Months of tables are maintained first. If that fails, as for a table that is in use for long,
      a later sweep does so.
    - Files of the archive (`drafts`) that a killed process began are removed after an hour.
    - At the end, space that removed rows took is returned in steps.
    """

    def __init__(
        self,
        *,
        organizations: OrganizationStore,
        retention: RetentionStore,
        tools: ExpiringTools,
        apply_retention: ApplyRetention,
        maintain_months: MaintainMonths,
        space: FreeSpace,
        lock: SweepLock,
        clock: Clock,
        drafts: ArchiveDrafts | None = None,
        batch: int = BATCH,
    ) -> None:
        self._organizations = organizations
        self._retention = retention
        self._tools = tools
        self._apply_retention = apply_retention
        self._maintain_months = maintain_months
        self._space = space
        self._lock = lock
        self._clock = clock
        self._drafts = drafts
        self._batch = batch

    async def execute(self) -> bool:
        """Sweep once; False if another process is sweeping."""
        async with self._lock.taken() as is_ours:
            if is_ours:
                await self._sweep()
            return is_ours

    async def _sweep(self) -> None:
        if self._drafts is not None and (removed := await self._drafts.remove(self._clock.now() - BROKEN_OFF)):
            logger.info("removed %d unfinished files of the archive", removed)
        await self._months()
        cursor: str | None = None
        while True:
            page = await self._organizations.page(PageRequest(limit=ORGANIZATIONS, cursor=cursor))
            for organization in page.items:
                await self._attempt(self._forget_keys(organization), organization)
                await self._attempt(self._expire_tools(organization), organization)
                await self._attempt(self._retain(organization), organization)
            cursor = page.next_cursor
            if cursor is None:
                break
        while await self._retention.forget_authorizations(self._clock.now(), limit=self._batch) == self._batch:
            pass
        while await self._space.give_back():
            pass

    async def _months(self) -> None:
        try:
            await self._maintain_months.execute()
        except ServiceError as error:
            logger.warning("months of tables are maintained by a later sweep: %s", error.detail)
        except Exception:
            logger.exception("maintaining months of tables failed")

    async def _forget_keys(self, organization: Organization) -> None:
        before = self._clock.now() - KEY_LIFETIME
        while await self._retention.forget_idempotency_keys(organization.id, before, limit=self._batch) == self._batch:
            pass

    async def _expire_tools(self, organization: Organization) -> None:
        while await self._tools.expire(organization.id, self._clock.now(), limit=self._batch) == self._batch:
            pass

    async def _retain(self, organization: Organization) -> None:
        if organization.retention_days is None:
            return
        command = ApplyRetentionCommand(organization_id=organization.id, retention_days=organization.retention_days)
        applied = await self._apply_retention.execute(command)
        if not applied.nothing:
            logger.info(
                "retention removed %d threads, %d workflow runs and %d audit entries",
                applied.threads,
                applied.workflow_runs,
                applied.audit_events,
                extra={"organization_id": organization.id},
            )

    async def _attempt(self, work: Coroutine[None, None, None], organization: Organization) -> None:
        """An unavailable database ends the sweep; any other error affects one organization only."""
        try:
            await work
        except Exception as error:
            if isinstance(error, ServiceError) and error.kind is ErrorKind.UNAVAILABLE:
                raise
            logger.exception("sweeping failed for one organization", extra={"organization_id": organization.id})
