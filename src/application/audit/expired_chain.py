"""ExpiredChain: the part of a chain that retention may remove: read, checked, and archived where
that is set up."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from application.audit.ports import ArchivedPart, AuditArchive, AuditChain
from domain.audit.chain import ChainKeys, Link
from domain.audit.chain_check import ChainCheck, StoredLink, head_problem, leading
from domain.errors import ServiceError, conflict
from domain.ids import OrganizationId

BATCH = 1_000
PART = 20_000
"""Entries of an archived part, which is held in memory."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """The entries after the number `start` up to `last`."""

    start: int
    last: Link


class ExpiredChain:
    """Rules:
    - The part goes from the start of the chain to the first entry from `before` or later.
    - It is verified; a seal or a head under an unknown key is unchecked, and ends in an error.
    - With an archive, all of it is written there before this returns.
    """

    def __init__(
        self, *, chain: AuditChain, archive: AuditArchive | None, batch: int = BATCH, part: int = PART
    ) -> None:
        self._chain = chain
        self._archive = archive
        self._batch = batch
        self._part = part

    async def checked(self, organization_id: OrganizationId, before: datetime, keys: ChainKeys) -> Expired | None:
        """None if nothing has expired. Raises CONFLICT `audit_chain_broken`, INTERNAL
        `archive_failed`."""
        end = await self._chain.end(organization_id)
        head = end.head
        if head is None:
            return None
        problem = head_problem(head, last_number=end.last_number, keys=keys.known)
        if head.key_id not in keys.known or problem is not None:
            raise _broken(organization_id)
        check = ChainCheck(keys.known, head.pruned_through, head.pruned_seal)
        until = (before - _EPOCH) // _MICROSECOND
        last: Link | None = None
        waiting: list[StoredLink] = []
        previous = check.seal
        while True:
            old = leading(await self._chain.links(organization_id, check.number, self._batch), until)
            if check.take(old) is not None or check.unknown:
                raise _broken(organization_id)
            waiting += old
            is_last = len(old) < self._batch
            if waiting and (is_last or len(waiting) >= self._part):
                await self._store(organization_id, previous, waiting)
                last = waiting[-1].link
                waiting, previous = [], last.seal
            if is_last:
                return None if last is None else Expired(start=head.pruned_through, last=last)

    async def _store(self, organization_id: OrganizationId, previous_seal: str, links: list[StoredLink]) -> None:
        if self._archive is not None:
            part = ArchivedPart(organization_id=organization_id, previous_seal=previous_seal, links=tuple(links))
            await self._archive.store(part)


def _broken(organization_id: OrganizationId) -> ServiceError:
    return conflict(
        "audit_chain_broken",
        f"The audit chain of {organization_id} has been changed and is not pruned: see `audit verify`.",
        organization_id=organization_id,
    )
