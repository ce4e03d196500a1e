"""Ports of the audit slice."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.chain import ChainHead, ChainKey, ChainKeys, Entry, Link
from domain.audit.chain_check import StoredLink
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import OrganizationId
from domain.teams import Teams

PruneEntry = Callable[[int, int], AuditEvent]
"""Builds the entry that records a removal: the last removed number, and how many entries were
removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Conditions that an entry must all meet; None does not restrict. `action` may end in `.*`
    (`tool.*`). `decisions` are some of `DECISIONS`. `since` is inclusive, `until` exclusive.
    `teams` are those of the reader: where teams own something, or have owned it, entries about what
    the reader does not see are left out, and about what is deleted."""

    action: str | None = None
    actor: str | None = None
    resource: str | None = None
    run_id: str | None = None
    tool: str | None = None
    server_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    decisions: tuple[AuditAction, ...] | None = None
    teams: Teams = None


class AuditLog(Protocol):
    """Reads the audit trail. Stores write entries together with the changes that they describe."""

    async def page(
        self, organization_id: OrganizationId, wanted: AuditFilter, request: PageRequest
    ) -> Page[AuditEvent]:
        """Matching entries, newest first."""

    async def record(self, audit: AuditEvent) -> None:
        """Store an entry that belongs to no stored change, such as a test of a server."""


class SealKeys(Protocol):
    """The sealing keys. They are derived from the secret keys and survive the rotation of those."""

    def current(self) -> ChainKey: ...

    async def all(self) -> ChainKeys:
        """The current key and all other known keys. Those of older secret keys are stored before
        this returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A position in the trail by time: microseconds since 1970 (UTC), then the id of an entry."""

    at: int
    event_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The unsealed entries of a section of the trail, and the start of the next section."""

    unsealed: tuple[Place, ...]
    next: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An organization with entries to seal, from the oldest one on, or with only a head to sign."""

    organization_id: OrganizationId
    since: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """How many entries were sealed, and the last one."""

    count: int
    last: Place | None


class AuditSeals(Protocol):
    """Seals entries. Extending or pruning a chain holds the lock of its organization and nothing
    else.

    Raises: CONFLICT `audit_chain_broken` if the stored head is not genuine.
    """

    async def waiting(self, since: Place, current_key: str) -> tuple[Waiting, ...]:
        """Organizations with unsealed entries from `since` on, or with a head under another key."""

    async def organizations(self) -> tuple[OrganizationId, ...]: ...

    async def scan(self, organization_id: OrganizationId, after: Place, limit: int) -> Scanned:
        """Scan up to `limit` entries after `after`."""

    async def seal(
        self, organization_id: OrganizationId, since: Place, *, keys: ChainKeys, at: datetime, limit: int
    ) -> Sealed:
        """Seal up to `limit` visible unsealed entries from `since` on, oldest first, and sign the
        head with the current key."""

    async def prune(
        self,
        organization_id: OrganizationId,
        before: datetime,
        *,
        keys: ChainKeys,
        audit: PruneEntry,
        limit: int,
        through: int | None = None,
    ) -> int:
        """Remove up to `limit` entries from the start of the chain, up to the first one at or after
        `before`, and none after the number `through`. Returns how many.

        The signed head records the new start; `audit` is stored in the same transaction.

        Raises: CONFLICT `audit_chain_broken`, also if an entry to remove is not as it was sealed,
        or is under an unknown key.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPart:
    """Consecutive sealed entries of one organization, at least one. `previous_seal` is that of the
    entry before the first."""

    organization_id: OrganizationId
    previous_seal: str
    links: tuple[StoredLink, ...]


class AuditArchive(Protocol):
    """Where entries are written before retention removes them."""

    async def store(self, part: ArchivedPart) -> None:
        """Write a part durably. The same part may be written again. Raises INTERNAL
        `archive_failed`."""


class ArchivedAudit(Protocol):
    """Reads what was archived."""

    async def names(self) -> tuple[str, ...]:
        """All parts, by organization and the number of their first entry."""

    async def read(self, name: str) -> ArchivedPart | None:
        """The part; None if it is not as it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A month of a table that has ended, and the time at which it did."""

    name: str
    ends: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredPart:
    """The checked beginning of a chain, up to `last`, from the entry after the number `start` on.
    `audit` records its removal."""

    organization_id: OrganizationId
    start: int
    last: Link
    audit: AuditEvent


class AuditMonths(Protocol):
    """Removes entries by whole months, on a database that stores them so."""

    async def oldest(self) -> Month | None:
        """The oldest month. None if none has ended, or entries are not stored by months."""

    async def remove(self, month: Month, parts: Sequence[ExpiredPart], *, keys: ChainKeys) -> bool:
        """Remove the entries of these parts with the month, and sign the new starts of their
        chains. Other entries of the month stay; if they are more than a tenth of it, nothing is
        removed. Whether it was.

        Raises: CONFLICT `audit_chain_broken`, and UNAVAILABLE `storage_unavailable`, also if the
        month or a chain has changed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnd:
    """The signed head, and the number of the last stored seal (0 without any), read together."""

    head: ChainHead | None
    last_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPart:
    """Links in order. The last part also holds the entries without a seal, oldest first."""

    links: tuple[StoredLink, ...]
    unsealed: tuple[Entry, ...]
    is_last: bool


class AuditChain(Protocol):
    """Reads the stored chain in batches."""

    async def end(self, organization_id: OrganizationId) -> ChainEnd: ...

    async def links(self, organization_id: OrganizationId, after: int, limit: int) -> tuple[StoredLink, ...]:
        """Links after the number `after`, in order."""

    async def export(self, organization_id: OrganizationId, wanted: AuditFilter, after: int, limit: int) -> ExportPart:
        """Up to `limit` links after `after` with matching entries.

        The last part is read in one snapshot, so that no entry is missed while it is sealed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """An organization with sealed entries that were not sent: those after the number `after`. The
    first of them was sealed at `since`. Retention removed `lost` entries before they were sent."""

    organization_id: OrganizationId
    after: int
    since: datetime
    lost: int


class AuditForwards(Protocol):
    """How far each organization's chain was sent to the receiver."""

    async def unsent(self, limit: int) -> tuple[Unsent, ...]:
        """Up to `limit` organizations, the longest waiting first."""

    async def sent(self, organization_id: OrganizationId, number: int, at: datetime) -> None:
        """Entries up to `number` were sent. A smaller number than before changes nothing."""


class ForwardTurn(Protocol):
    """Lets one process send at a time."""

    def taken(self) -> AbstractAsyncContextManager[bool]:
        """Try to take the turn, which ends with the context. Never waits. Raises UNAVAILABLE
        `storage_unavailable`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The outcome of sending a batch. `failure` says in safe words why it was not accepted; None if
    it was. `too_large`: a smaller batch may be accepted."""

    failure: str | None = None
    too_large: bool = False
    retry_after_s: float | None = None


class AuditReceiver(Protocol):
    """The receiver of sealed audit entries outside: a SIEM."""

    async def send(self, links: Sequence[StoredLink]) -> Receipt:
        """Send entries of one chain in order. All of them are accepted, or the batch is sent
        again."""

    async def close(self) -> None: ...
