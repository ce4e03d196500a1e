"""PruneAudit: remove the oldest part of an organization's trail."""

from dataclasses import dataclass
from datetime import datetime

from application.audit.expired_chain import ExpiredChain
from application.audit.ports import AuditSeals, SealKeys
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId, OrganizationId

BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneAuditCommand:
    """`before` is the time of the first entry to keep."""

    organization_id: OrganizationId
    before: datetime


class PruneAudit:
    """Removes expired audit entries for the retention job.

    Rules:
    - Only sealed entries are removed, from the start of the chain, and only after verification.
      What is left of a manipulated trail is evidence.
    - The signed head records the new start of the chain.
    - Each removal is audited (`audit.pruned`) in the same transaction.
    - With an archive (`archiving`), all of it is archived first. What could not be written is not
      removed.

    Raises: ServiceError audit_chain_broken, archive_failed.
    """

    def __init__(
        self,
        *,
        seals: AuditSeals,
        keys: SealKeys,
        clock: Clock,
        ids: IdSource,
        archiving: ExpiredChain | None = None,
        batch: int = BATCH,
    ) -> None:
        self._archiving = archiving
        self._seals = seals
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._batch = batch

    async def execute(self, command: PruneAuditCommand) -> int:
        """Returns how many entries were removed."""
        keys = await self._keys.all()
        through: int | None = None
        if self._archiving is not None:
            expired = await self._archiving.checked(command.organization_id, command.before, keys)
            if expired is None:
                return 0
            through = expired.last.number
        removed = 0
        while True:
            count = await self._seals.prune(
                command.organization_id,
                command.before,
                keys=keys,
                audit=self._entry(command, AuditEventId(self._ids.new("aud"))),
                limit=self._batch,
                through=through,
            )
            removed += count
            if count < self._batch:
                return removed

    def _entry(self, command: PruneAuditCommand, event_id: AuditEventId) -> "_PruneEntry":
        return _PruneEntry(id=event_id, command=command, at=self._clock.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class _PruneEntry:
    id: AuditEventId
    command: PruneAuditCommand
    at: datetime

    def __call__(self, through: int, count: int) -> AuditEvent:
        return pruned_entry(
            self.id, self.command.organization_id, at=self.at, before=self.command.before, through=through, count=count
        )


def pruned_entry(
    event_id: AuditEventId, organization_id: OrganizationId, *, at: datetime, before: datetime, through: int, count: int
) -> AuditEvent:
    """The record of a removal: entries up to the number `through`, from before `before`."""
    return AuditEvent(
        id=event_id,
        organization_id=organization_id,
        action=AuditAction.AUDIT_PRUNED,
        actor="system",
        resource=organization_id,
        at=at,
        details={"through": through, "removed": count, "before": before.isoformat()},
    )
