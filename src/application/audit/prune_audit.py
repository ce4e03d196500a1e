"""PruneAudit: let go of the old part of an organization's trail."""

from dataclasses import dataclass
from datetime import datetime

from application.audit.ports import AuditSeals, SealKeys
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId, OrganizationId

BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneAuditCommand:
    """Whose entries, and until when: `before` is the first moment that is kept."""

    organization_id: OrganizationId
    before: datetime


class PruneAudit:
    """The system's retention. Only what is sealed is removed, from the beginning of the chain and only once it was
    checked: what is left of a trail that somebody has tampered with is evidence. The signed head then says from where
    the chain goes on, and each removal is itself recorded (`audit.pruned`), in the same transaction."""

    def __init__(self, *, seals: AuditSeals, keys: SealKeys, clock: Clock, ids: IdSource, batch: int = BATCH) -> None:
        self._seals = seals
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._batch = batch

    async def execute(self, command: PruneAuditCommand) -> int:
        """How many entries were removed. Raises CONFLICT `audit_chain_broken`."""
        keys = await self._keys.all()
        removed = 0
        while True:
            count = await self._seals.prune(
                command.organization_id,
                command.before,
                keys=keys,
                audit=self._entry(command, AuditEventId(self._ids.new("aud"))),
                limit=self._batch,
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
        return AuditEvent(
            id=self.id,
            organization_id=self.command.organization_id,
            action=AuditAction.AUDIT_PRUNED,
            actor="system",
            resource=self.command.organization_id,
            at=self.at,
            details={"through": through, "removed": count, "before": self.command.before.isoformat()},
        )
