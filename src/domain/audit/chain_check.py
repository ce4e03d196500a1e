"""Verification of a chain of audit entries, link by link, in constant memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from domain.audit.chain import SEALED_FIELDS, ChainHead, ChainKey, Entry, Link, is_genuine, seal_of

LATE_US = 10_000_000
"""An entry is late when it was sealed more than this many microseconds after its creation."""

_AT = SEALED_FIELDS.index("at")


class ChainProblem(StrEnum):
    """The kind of defect at a place in the chain. The values are part of the public contract."""

    EDITED = "edited"
    """The entry or its seal was changed after sealing."""
    DELETED = "deleted"
    """The entry or its seal is missing."""
    REORDERED = "reordered"
    """An entry that was sealed at another place is found here."""
    INSERTED = "inserted"
    """A seal follows the end of the chain."""
    HEAD_EDITED = "head_edited"
    """The signed head was changed."""
    HEAD_DELETED = "head_deleted"
    """The signed head is missing."""
    UNSEALED = "unsealed"
    """The entry has waited for its seal for more than ten seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLink:
    """The first broken place of a chain. `number` is None for entries that were never sealed,
    `event_id` None if it is lost."""

    number: int | None
    event_id: str | None
    problem: ChainProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLink:
    """A link and its entry; `entry` is None if it is missing."""

    link: Link
    entry: Entry | None


def leading(links: Sequence[StoredLink], before: int) -> tuple[StoredLink, ...]:
    """The links before the first one whose entry was created at `before` (microseconds since 1970)
    or later. An entry without a readable time does not end them: their check reports it."""
    count = 0
    for stored in links:
        at = None if stored.entry is None else stored.entry[_AT]
        if isinstance(at, int) and at >= before:
            break
        count += 1
    return tuple(links[:count])


@dataclass(slots=True)
class ChainCheck:
    """Verifies the links after `number`, in order, in batches of any size.

    A link under an unknown key cannot be verified; it is counted. The link after it still detects a
    change of its seal.
    """

    keys: Mapping[str, ChainKey]
    number: int
    seal: str
    checked: int = 0
    late: int = 0
    """Links that were sealed more than ten seconds after their entry."""
    unknown: dict[str, int] = field(default_factory=dict)
    """The number of links per unknown key id."""

    def take(self, batch: Sequence[StoredLink]) -> BrokenLink | None:
        """The first broken link of the batch, or None. The check ends at the first broken link."""
        for stored in batch:
            problem = self._problem(stored)
            if problem is ChainProblem.EDITED and self._stands_elsewhere(stored, batch):
                problem = ChainProblem.REORDERED
            if problem is not None:
                missing = stored.link.number != self.number + 1
                event_id = None if missing else stored.link.event_id
                return BrokenLink(number=self.number + 1, event_id=event_id, problem=problem)
            self._count(stored)
        return None

    def end(self, head: ChainHead, *, last_number: int) -> BrokenLink | None:
        """The defect at the end, if any. The chain must end exactly at its signed head, which is
        read together with `last_number`, the number of the last stored link."""
        if self.number < head.number:
            return BrokenLink(number=self.number + 1, event_id=None, problem=ChainProblem.DELETED)
        if self.number == head.number and self.seal != head.seal:
            return BrokenLink(number=self.number, event_id=None, problem=ChainProblem.EDITED)
        if last_number > head.number:
            return BrokenLink(number=head.number + 1, event_id=None, problem=ChainProblem.INSERTED)
        return None

    def _problem(self, stored: StoredLink) -> ChainProblem | None:
        link = stored.link
        if link.number != self.number + 1 or stored.entry is None:
            return ChainProblem.DELETED
        key = self.keys.get(link.key_id)
        if key is None:
            return None
        expected = seal_of(key, self.seal, link.number, link.sealed_at, stored.entry)
        return None if expected == link.seal else ChainProblem.EDITED

    def _stands_elsewhere(self, stored: StoredLink, batch: Sequence[StoredLink]) -> bool:
        """Whether the seal that belongs here, or its entry, is found at another place of the
        batch."""
        for other in batch:
            key = self.keys.get(other.link.key_id)
            if other is stored or key is None or other.entry is None:
                continue
            for link in (stored.link, other.link):
                seal = seal_of(key, self.seal, self.number + 1, link.sealed_at, other.entry)
                if seal in (stored.link.seal, other.link.seal):
                    return True
        return False

    def _count(self, stored: StoredLink) -> None:
        link = stored.link
        self.number, self.seal = link.number, link.seal
        self.checked += 1
        if link.key_id not in self.keys:
            self.unknown[link.key_id] = self.unknown.get(link.key_id, 0) + 1
        at = None if stored.entry is None else stored.entry[_AT]
        if isinstance(at, int) and link.sealed_at - at > LATE_US:
            self.late += 1


def head_problem(head: ChainHead | None, *, last_number: int, keys: Mapping[str, ChainKey]) -> BrokenLink | None:
    """The defect of the head itself, if any. A head under an unknown key cannot be verified."""
    if head is None:
        problem = ChainProblem.HEAD_DELETED
        return BrokenLink(number=None, event_id=None, problem=problem) if last_number else None
    key = keys.get(head.key_id)
    if key is None or is_genuine(key, head):
        return None
    return BrokenLink(number=None, event_id=None, problem=ChainProblem.HEAD_EDITED)
