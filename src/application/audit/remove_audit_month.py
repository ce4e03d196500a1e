"""RemoveAuditMonth: remove a month of the audit trail at once, of all organizations that need it no longer."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from application.audit.ports import AuditChain, AuditMonths, ExpiredPart, Month, SealKeys
from application.audit.prune_audit import pruned_entry
from application.system.ports import Clock, IdSource
from domain.audit.chain import ChainKeys, Link
from domain.audit.chain_check import ChainCheck, head_problem, leading
from domain.ids import AuditEventId, OrganizationId

logger = logging.getLogger(__name__)

BATCH = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAuditMonthCommand:
    """`organizations` need no entry from before the month's end."""

    month: Month
    organizations: tuple[OrganizationId, ...]


class RemoveAuditMonth:
    """Rules:
    - Only sealed entries are removed, from the start of each chain up to the first entry from after the month's end, and only
      after verification. The entries of a chain that does not verify stay.
    - Signed heads record the new starts of the chains; each removal is audited (`audit.pruned`). All is one transaction.
    - If more than a tenth of the month would stay, nothing is removed.

    Raises: ServiceError audit_chain_broken, storage_unavailable if entries were added meanwhile.
    """

    def __init__(
        self,
        *,
        months: AuditMonths,
        chain: AuditChain,
        keys: SealKeys,
        clock: Clock,
        ids: IdSource,
        batch: int = BATCH,
    ) -> None:
        self._months = months
        self._chain = chain
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._batch = batch

    async def execute(self, command: RemoveAuditMonthCommand) -> bool:
        """Returns whether the month was removed."""
        keys = await self._keys.all()
        parts = [await self._expired(one, command.month, keys) for one in command.organizations]
        return await self._months.remove(command.month, [part for part in parts if part is not None], keys=keys)

    async def _expired(self, organization_id: OrganizationId, month: Month, keys: ChainKeys) -> ExpiredPart | None:
        """The checked part of a chain; None if it has nothing to remove, or was changed."""
        end = await self._chain.end(organization_id)
        head = end.head
        if head is None or head_problem(head, last_number=end.last_number, keys=keys.known) is not None:
            return None
        check = ChainCheck(keys.known, head.pruned_through, head.pruned_seal)
        before = (month.ends - _EPOCH) // _MICROSECOND
        last: Link | None = None
        while True:
            old = leading(await self._chain.links(organization_id, check.number, self._batch), before)
            # A seal under an unknown key is unchecked: it must not permit the removal of entries.
            if check.take(old) is not None or check.unknown:
                logger.error(
                    "the audit chain is not pruned, as it was changed", extra={"organization_id": organization_id}
                )
                return None
            last = old[-1].link if old else last
            if len(old) < self._batch:
                break
        if last is None:
            return None
        audit = pruned_entry(
            AuditEventId(self._ids.new("aud")),
            organization_id,
            at=self._clock.now(),
            before=month.ends,
            through=last.number,
            count=last.number - head.pruned_through,
        )
        return ExpiredPart(organization_id=organization_id, start=head.pruned_through, last=last, audit=audit)
