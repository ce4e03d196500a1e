"""Ports of the audit slice."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.chain import ChainHead, ChainKey, ChainKeys, Entry
from domain.audit.chain_check import StoredLink
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId

PruneEntry = Callable[[int, int], AuditEvent]
"""Makes the entry that says: up to this number, so many entries were removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Conditions that all must hold; None does not restrict. `action` may end in `.*` (`tool.*`).
    `since` is inclusive, `until` exclusive."""

    action: str | None = None
    actor: str | None = None
    resource: str | None = None
    run_id: str | None = None
    tool: str | None = None
    server_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditLog(Protocol):
    """Reading the audit trail; entries are written by the stores, with the changes they describe."""

    async def page(
        self, organization_id: OrganizationId, wanted: AuditFilter, request: PageRequest
    ) -> Page[AuditEvent]:
        """Matching entries, newest first."""
        ...

    async def record(self, audit: AuditEvent) -> None:
        """Store an entry that describes no stored change (a test of a server)."""
        ...


class SealKeys(Protocol):
    """The keys of seals: derived from the secret keys, and kept when those are rotated."""

    def current(self) -> ChainKey:
        """The key that seals now."""
        ...

    async def all(self) -> ChainKeys:
        """The current key, which is stored by then, and every other that is known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in the trail by time: microseconds since 1970 (UTC), then the id of an entry."""

    at: int
    event_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """A stretch of the trail by time: which of its entries are not sealed, and where the next stretch begins."""

    unsealed: tuple[Place, ...]
    next: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An organization with something to seal, from its oldest such entry on, or with a head to sign alone."""

    organization_id: OrganizationId
    since: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """How many entries were sealed, and the last of them."""

    count: int
    last: Place | None


class AuditSeals(Protocol):
    """Sealing. What extends or prunes a chain holds the lock of its organization and nothing else; it raises CONFLICT
    `audit_chain_broken` where the stored head is not ours to go on from."""

    async def waiting(self, since: Place, current_key: str) -> tuple[Waiting, ...]:
        """Organizations with unsealed entries from `since` on, or with a head under another key."""
        ...

    async def organizations(self) -> tuple[OrganizationId, ...]:
        """All there are."""
        ...

    async def scan(self, organization_id: OrganizationId, after: Place, limit: int) -> Scanned:
        """Look through up to `limit` entries behind `after`."""
        ...

    async def seal(
        self, organization_id: OrganizationId, since: Place, *, keys: ChainKeys, at: datetime, limit: int
    ) -> Sealed:
        """Seal up to `limit` visible entries from `since` on that have no seal, oldest first, and sign the head with
        the current key."""
        ...

    async def prune(
        self, organization_id: OrganizationId, before: datetime, *, keys: ChainKeys, audit: PruneEntry, limit: int
    ) -> int:
        """Remove up to `limit` entries from the beginning of the chain, up to the first one of `before` or later, and
        let the signed head say from where the chain goes on; `audit` is stored with that. How many were removed.
        Raises CONFLICT `audit_chain_broken` as well where what would be removed is not what was sealed, or is under a
        key that is not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnd:
    """The signed head, and the number of the last stored seal (0 without any), seen at one moment."""

    head: ChainHead | None
    last_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPart:
    """Links in order; with the last part, the entries that no seal covers yet, oldest first."""

    links: tuple[StoredLink, ...]
    unsealed: tuple[Entry, ...]
    is_last: bool


class AuditChain(Protocol):
    """Reading the chain as it is stored, in batches."""

    async def end(self, organization_id: OrganizationId) -> ChainEnd:
        """Where it ends."""
        ...

    async def links(self, organization_id: OrganizationId, after: int, limit: int) -> tuple[StoredLink, ...]:
        """Links behind the one with number `after`, in order."""
        ...

    async def export(self, organization_id: OrganizationId, wanted: AuditFilter, after: int, limit: int) -> ExportPart:
        """Up to `limit` links behind `after` whose entries match. Everything of the last part is seen at one moment, so
        that no entry falls between links and unsealed ones."""
        ...
