"""RemoveAuditMonth: remove a month of the audit trail at once, of all organizations that need it no
longer."""

import logging
from dataclasses import dataclass

from application.audit.expired_chain import ExpiredChain
from application.audit.ports import AuditMonths, ExpiredPart, Month, SealKeys
from application.audit.prune_audit import pruned_entry
from application.system.ports import Clock, IdSource
from domain.audit.chain import ChainKeys
from domain.errors import ErrorKind, ServiceError
from domain.ids import AuditEventId, OrganizationId

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAuditMonthCommand:
    """`organizations` need no entry from before the month's end."""

    month: Month
    organizations: tuple[OrganizationId, ...]


class RemoveAuditMonth:
    """Rules:
    - Only sealed entries are removed, from the start of each chain up to the first entry from after
      the month's end, and only after verification. The entries of a chain that does not verify
      stay.
    - Signed heads record the new starts of the chains; each removal is audited (`audit.pruned`).
      All is one transaction.
    - If more than a tenth of the month would stay, nothing is removed.
    - With an archive, all entries are archived before. If that fails, nothing is removed.

    Raises: ServiceError audit_chain_broken, archive_failed, storage_unavailable if entries were
    added meanwhile.
    """

    def __init__(
        self,
        *,
        months: AuditMonths,
        expired: ExpiredChain,
        keys: SealKeys,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._months = months
        self._expired = expired
        self._keys = keys
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RemoveAuditMonthCommand) -> bool:
        """Returns whether the month was removed."""
        keys = await self._keys.all()
        parts = [await self._part(one, command.month, keys) for one in command.organizations]
        return await self._months.remove(command.month, [part for part in parts if part is not None], keys=keys)

    async def _part(self, organization_id: OrganizationId, month: Month, keys: ChainKeys) -> ExpiredPart | None:
        """The checked part of a chain; None if it has nothing to remove, or was changed."""
        try:
            expired = await self._expired.checked(organization_id, month.ends, keys)
        except ServiceError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            logger.error("%s", error.detail, extra={"organization_id": organization_id})
            return None
        if expired is None:
            return None
        audit = pruned_entry(
            AuditEventId(self._ids.new("aud")),
            organization_id,
            at=self._clock.now(),
            before=month.ends,
            through=expired.last.number,
            count=expired.last.number - expired.start,
        )
        return ExpiredPart(organization_id=organization_id, start=expired.start, last=expired.last, audit=audit)
