"""The keyed hash chain over audit entries: seals, signed heads, and how a chain is extended.
`chain_check.py` verifies it.

A seal is an HMAC-SHA256 over the previous seal, the entry's number, the time of sealing and the
stored entry. A signed head per organization records where the chain begins and ends, so that a
truncated chain is detected.
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
"""The fields that a seal covers, in this order: `at` as microseconds since 1970 (UTC), `details` as
the stored JSON text. Another list or order requires keys for another purpose, so that existing
seals stay valid."""

# Built once: `json.dumps` builds an encoder for every call with non-default options.
_SEALED_JSON = json.JSONEncoder(separators=(",", ":"), default=repr)

StoredValue = str | int | float | bytes | None
"""A value as the database returns it. It is sealed or compared, never interpreted."""
Entry = tuple[StoredValue, ...]
"""The values of `SEALED_FIELDS`."""

_KEY_ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainKey:
    """A sealing key. Its id may be shown: it is a MAC of a fixed text."""

    id: str
    secret: bytes


def chain_key(secret: bytes) -> ChainKey:
    """The chain key for a 32-byte secret."""
    identifier = hmac.digest(secret, b"dragoman/audit-seal/id", "sha256")[:_KEY_ID_BYTES].hex()
    return ChainKey(id=identifier, secret=secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainKeys:
    """The current sealing key, and all known keys by id."""

    current: ChainKey
    known: Mapping[str, ChainKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One stored seal; nothing in it is trusted before verification. `sealed_at`: microseconds
    since 1970 (UTC)."""

    number: int
    event_id: str
    key_id: str
    seal: str
    sealed_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The signed end of an organization's chain.

    Retention removed the entries up to `pruned_through`; `pruned_seal` is the last seal among them,
    and the remaining chain starts from it.
    """

    organization_id: OrganizationId
    number: int
    seal: str
    pruned_through: int
    pruned_seal: str
    key_id: str
    signature: str


def seal_of(key: ChainKey, previous: str, number: StoredValue, sealed_at: StoredValue, entry: Entry) -> str:
    """The seal as 64 hex digits. It covers the previous seal, a line feed, and `[number, sealed_at,
    *entry]` as ASCII JSON without spaces."""
    content = _SEALED_JSON.encode([number, sealed_at, *entry])
    return hmac.digest(key.secret, f"{previous}\n{content}".encode("utf-8", "surrogatepass"), "sha256").hex()


def first_head(key: ChainKey, organization_id: OrganizationId) -> ChainHead:
    """The head of an empty chain. Its seal depends on the organization alone."""
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
    """The head, signed with this key."""
    return replace(head, key_id=key.id, signature=_signature(key, head))


def is_genuine(key: ChainKey, head: ChainHead) -> bool:
    """Whether the head is unchanged since it was signed."""
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
    """The head after `last` and all links before it were removed."""
    return signed(key, replace(head, pruned_through=last.number, pruned_seal=last.seal))


def continuable(head: ChainHead, keys: ChainKeys, last_key_id: Callable[[], str | None]) -> bool:
    """Whether the chain may be extended, or its head signed again, without vouching for a forged
    one.

    - A head under a known key must have a valid signature.
    - A head under an unknown key is accepted only if its last link (`last_key_id`) has an unknown
      key too. That link stays a visible seam. An attacker who truncates the chain and names an
      unknown key in the head is then detected at the link before the cut.
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
