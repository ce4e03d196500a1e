"""The keyed chain over audit entries: what a seal covers, and how a chain goes on. Checking one: chain_check.py.

A seal is HMAC-SHA256 over the seal before it, the entry's number, the moment of sealing and the entry as it is stored.
A signed head per organization says how far the chain goes, so that its end cannot be cut off, and where it begins.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.ids import OrganizationId

SEALED_FIELDS = (
    "id",
    "organization_id",
    "action",
    "actor",
    "resource",
    "at",
    "run_id",
    "tool",
    "server_id",
    "duration_ms",
    "arguments_digest",
    "details",
)
"""What a seal covers, in this order: `at` as microseconds since 1970 (UTC), `details` as the stored JSON text. Another
list or order needs keys of another purpose, so that seals of before stay what they are."""

# Made once: `json.dumps` makes an encoder for every call that wants other than its defaults.
_SEALED_JSON = json.JSONEncoder(separators=(",", ":"), default=repr)

StoredValue = str | int | float | bytes | None
"""A value as the database gives it: whatever somebody has put there is sealed or found out, not interpreted."""
Entry = tuple[StoredValue, ...]
"""The values of `SEALED_FIELDS`."""

_KEY_ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainKey:
    """A key of seals. Its id can be shown: it is a MAC of a fixed text."""

    id: str
    secret: bytes


def chain_key(secret: bytes) -> ChainKey:
    """The key with this secret (32 bytes)."""
    identifier = hmac.digest(secret, b"dragoman/audit-seal/id", "sha256")[:_KEY_ID_BYTES].hex()
    return ChainKey(id=identifier, secret=secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainKeys:
    """The key that seals now, and all that are known, by id."""

    current: ChainKey
    known: Mapping[str, ChainKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One seal. `sealed_at` in microseconds since 1970 (UTC). As it is stored: nothing here is trusted before it was
    checked."""

    number: int
    event_id: str
    key_id: str
    seal: str
    sealed_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """How far an organization's chain goes. Entries up to `pruned_through` were removed by retention; `pruned_seal` is
    the last seal among them, from which the chain goes on."""

    organization_id: OrganizationId
    number: int
    seal: str
    pruned_through: int
    pruned_seal: str
    key_id: str
    signature: str


def seal_of(key: ChainKey, previous: str, number: StoredValue, sealed_at: StoredValue, entry: Entry) -> str:
    """64 hex digits. What is sealed: the previous seal, a line feed, and `[number, sealed_at, *entry]` as JSON in ASCII
    without spaces."""
    content = _SEALED_JSON.encode([number, sealed_at, *entry])
    return hmac.digest(key.secret, f"{previous}\n{content}".encode("utf-8", "surrogatepass"), "sha256").hex()


def first_head(key: ChainKey, organization_id: OrganizationId) -> ChainHead:
    """The head of a chain without a link. What its first seal goes on from depends on the organization alone."""
    genesis = hashlib.sha256(f"dragoman/audit/{organization_id}".encode()).hexdigest()
    head = ChainHead(
        organization_id=organization_id,
        number=0,
        seal=genesis,
        pruned_through=0,
        pruned_seal=genesis,
        key_id=key.id,
        signature="",
    )
    return signed(key, head)


def signed(key: ChainKey, head: ChainHead) -> ChainHead:
    """The head under this key."""
    return replace(head, key_id=key.id, signature=_signature(key, head))


def is_genuine(key: ChainKey, head: ChainHead) -> bool:
    """Whether the head says what it said when it was signed."""
    return hmac.compare_digest(_signature(key, head).encode(), str(head.signature).encode("utf-8", "replace"))


def extended(
    head: ChainHead, entries: Sequence[Entry], *, key: ChainKey, sealed_at: int
) -> tuple[tuple[Link, ...], ChainHead]:
    """The links that seal these entries after `head`, and the head after them."""
    links: list[Link] = []
    number, seal = head.number, head.seal
    for entry in entries:
        number += 1
        seal = seal_of(key, seal, number, sealed_at, entry)
        links.append(Link(number=number, event_id=str(entry[0]), key_id=key.id, seal=seal, sealed_at=sealed_at))
    return tuple(links), signed(key, replace(head, number=number, seal=seal))


def pruned(head: ChainHead, last: Link, *, key: ChainKey) -> ChainHead:
    """The head once `last` and what is before it are gone."""
    return signed(key, replace(head, pruned_through=last.number, pruned_seal=last.seal))


def continuable(head: ChainHead, keys: ChainKeys, last_key_id: Callable[[], str | None]) -> bool:
    """Whether the chain may be extended, or its head signed anew, without lending our word to somebody else's.

    A head under a key that is no longer known is gone on from only where its last link (`last_key_id`) is under an
    unknown key as well: that link stays a visible seam. Cutting the end off and naming an unknown key in the head is
    then found at the link the cut was made after.
    """
    key = keys.known.get(head.key_id)
    if key is not None:
        return is_genuine(key, head)
    last = last_key_id()
    return last is not None and last not in keys.known


def _signature(key: ChainKey, head: ChainHead) -> str:
    content = json.dumps(
        [head.organization_id, head.number, head.seal, head.pruned_through, head.pruned_seal],
        separators=(",", ":"),
        default=repr,
    )
    return hmac.digest(key.secret, f"head\n{content}".encode("utf-8", "surrogatepass"), "sha256").hex()
