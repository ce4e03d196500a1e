"""VerifyAuditChain: check that the audit trail is unchanged."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.audit.ports import AuditChain, Place, Scanned, SealKeys
from application.system.ports import Clock
from domain.audit.chain import ChainHead, ChainKeys
from domain.audit.chain_check import LATE_US, BrokenLink, ChainCheck, ChainProblem, head_problem
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId

BATCH = 500
STRETCH = 5_000
_FROM_THE_START = Place(at=-(2**62))
_MICROSECONDS = 1_000_000


class UnsealedEntries(Protocol):
    """Finds entries without a seal."""

    async def scan(self, organization_id: OrganizationId, after: Place, limit: int) -> Scanned:
        """Scan up to `limit` entries after `after`."""


class Sealing(Protocol):
    async def caught_up(self) -> None:
        """Wait until the entries that earlier processes left unsealed are sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKey:
    """Seals under an unknown key, which cannot be verified."""

    key_id: str
    links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """The result of a verification.

    - `checked`: verified links; `sealed_through`: the number of the last link.
    - `pruned_through`: the last number that retention removed.
    - `unsealed`: entries without a seal; `sealed_late`: entries sealed more than ten seconds after
      their creation, as after a crash.
    """

    ok: bool
    checked: int
    sealed_through: int
    pruned_through: int
    unsealed: int
    sealed_late: int
    first_broken: BrokenLink | None
    unknown_keys: tuple[UnknownKey, ...]


class VerifyAuditChain:
    """Rules:
    - Any role may verify its organization's trail.
    - Reported are edits, deletions (also at the end), changes of order, foreign seals, and entries
      that were not sealed within ten seconds.
    - The trail is read in batches while the service continues to write, seal and prune.
    """

    def __init__(
        self, *, chain: AuditChain, entries: UnsealedEntries, sealing: Sealing, keys: SealKeys, clock: Clock
    ) -> None:
        self._chain = chain
        self._sealing = sealing
        self._entries = entries
        self._keys = keys
        self._clock = clock

    async def execute(self, principal: Principal) -> ChainReport:
        principal.require(Role.VIEWER)
        organization_id = principal.organization_id
        await self._sealing.caught_up()
        keys = await self._keys.all()
        unsealed, late = await self._unsealed(organization_id, self._clock.now())
        broken, check, head = await self._checked(organization_id, keys)
        if broken is None and late is not None:
            broken = BrokenLink(number=None, event_id=late, problem=ChainProblem.UNSEALED)
        unknown = tuple(UnknownKey(key_id=key_id, links=links) for key_id, links in check.unknown.items())
        return ChainReport(
            ok=broken is None and not unknown,
            checked=check.checked,
            sealed_through=0 if head is None else head.number,
            pruned_through=0 if head is None else head.pruned_through,
            unsealed=unsealed,
            sealed_late=check.late,
            first_broken=broken,
            unknown_keys=unknown,
        )

    async def _checked(
        self, organization_id: OrganizationId, keys: ChainKeys
    ) -> tuple[BrokenLink | None, ChainCheck, ChainHead | None]:
        """The first broken link. The check restarts if retention moved the start of the chain
        meanwhile."""
        while True:
            end = await self._chain.end(organization_id)
            head = end.head
            broken = head_problem(head, last_number=end.last_number, keys=keys.known)
            if head is None or broken is not None:
                return broken, ChainCheck(keys.known, 0, ""), head
            check = ChainCheck(keys.known, head.pruned_through, head.pruned_seal)
            if head.key_id not in keys.known:
                check.unknown[head.key_id] = 0
            broken = await self._links(organization_id, check, head) or check.end(head, last_number=end.last_number)
            now = (await self._chain.end(organization_id)).head if broken is not None else head
            if now is None or now.pruned_through == head.pruned_through:
                return broken, check, head

    async def _links(self, organization_id: OrganizationId, check: ChainCheck, head: ChainHead) -> BrokenLink | None:
        """Check the links up to the head; later ones were sealed after it was read."""
        while check.number < head.number:
            batch = await self._chain.links(organization_id, check.number, min(BATCH, head.number - check.number))
            if not batch:
                return None
            broken = check.take(batch)
            if broken is not None:
                return broken
        return None

    async def _unsealed(self, organization_id: OrganizationId, now: datetime) -> tuple[int, str | None]:
        """The number of unsealed entries, and the first one that has waited too long."""
        limit = int(now.timestamp() * _MICROSECONDS) - LATE_US
        count, late = 0, None
        place: Place | None = _FROM_THE_START
        while place is not None:
            stretch = await self._entries.scan(organization_id, place, STRETCH)
            count += len(stretch.unsealed)
            if late is None:
                late = next((entry.event_id for entry in stretch.unsealed if entry.at < limit), None)
            place = stretch.next
        return count, late
