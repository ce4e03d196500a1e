"""Egress guard for addresses that users name: scheme, resolved address, private ranges.

- `check` checks a URL before the request, with its host normalized as clients do (UTS 46).
- `GuardedResolver` (egress_resolver.py) checks resolved addresses and the address of every
  connection, against other spellings and DNS rebinding.
- Addresses configured by the operator (models, tracing) are exempt.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import idna

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNROUTED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "::/96",  # IPv4-compatible (RFC 4291)
        "::ffff:0:0:0/96",  # IPv4-translated (RFC 2765)
        "64:ff9b:1::/48",  # NAT64 within a network (RFC 8215)
        "fec0::/10",  # site-local (RFC 3879)
        "100:0:0:1::/64",  # dummy prefix (RFC 9780)
        "3fff::/20",  # documentation (RFC 9637)
        "5f00::/16",  # segment routing (RFC 9602)
        "192.0.0.0/24",  # protocol assignments (RFC 6890)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "168.63.129.16/32",  # the host of a virtual machine at Azure
    )
)
"""Not public, although `ipaddress` of some Python versions says so."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""The third quarter of an address with an IPv4 address in the last (RFC 5214, section 6.1)."""
_FULL_STOPS = str.maketrans("\u3002\uff0e\uff61", "...")
_MAX_URL = 8_192
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class EgressBlockedError(OSError):
    """The request is forbidden. `reason` is safe for users and models; `advice` adds the resolved
    address and the operator's remedy, for logs and administrators."""

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = f"{reason} {remedy}" if remedy else reason


class EgressPolicy:
    """Permits all public addresses, and those that `allow` lists: networks (`10.1.0.0/16`),
    addresses, or host names (`mcp.internal`, with any address). Raises ValueError for other
    entries."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._networks: list[Network] = []
        self._hosts: set[str] = set()
        for entry in allow:
            try:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                if not _is_host_name(entry):
                    raise ValueError(f"{entry!r} is neither a network nor an address nor a host name") from None
                self._hosts.add(entry.lower().rstrip("."))

    def refusal(self, url: str) -> str | None:
        """Why a URL is forbidden, with the remedy, as far as known without resolving; else None.
        For administrators."""
        try:
            self.check(url)
        except EgressBlockedError as blocked:
            return blocked.advice
        return None

    def check(self, url: str) -> None:
        """Check a URL before its request. Raises EgressBlockedError."""
        if len(url) > _MAX_URL:
            raise EgressBlockedError("The URL is too long.")
        if _CONTROL.search(url):
            # `urlsplit` drops tabs and line ends, so the checked URL would differ from the
            # requested one.
            raise EgressBlockedError("The URL is not valid.")
        try:
            parts = urlsplit(url)
            host = parts.hostname
            parts.port  # noqa: B018  # raises for a port that is none
        except ValueError:
            raise EgressBlockedError("The URL is not valid.") from None
        if parts.scheme not in {"http", "https"}:
            raise EgressBlockedError("Only http and https URLs may be requested.")
        if not host:
            raise EgressBlockedError("The URL names no host.")
        if parts.username is not None or parts.password is not None:
            raise EgressBlockedError("A URL may not carry credentials.")
        host = _normalized(host)
        address = _literal_address(host)
        if address is not None:
            self.check_address(host, address)

    def permits(self, host: str, address: Address) -> bool:
        return self._permits(host, address)

    def check_address(self, host: str, address: Address) -> None:
        """Check a resolved address of `host`. Raises EgressBlockedError."""
        if not self._permits(host, address):
            raise EgressBlockedError(
                f"The address of {host} is not public, so it is not requested.",
                remedy=f"It is {address}; an operator can allow it with DRAGOMAN_EGRESS_ALLOW.",
            )

    def _permits(self, host: str, address: Address) -> bool:
        if host.lower().rstrip(".") in self._hosts:
            return True
        inner = _embedded(address)
        candidates = (address,) if inner is None else (address, inner)
        if all(_is_public(candidate) for candidate in candidates):
            return True
        innermost = candidates[-1]
        return any(innermost.version == network.version and innermost in network for network in self._networks)


def _normalized(host: str) -> str:
    """The host as clients normalize it before resolving; digits and full stops of other alphabets
    become ASCII. Raises EgressBlockedError."""
    if ":" in host:
        return host  # an IPv6 address, parsed by `urlsplit`
    if "%" in host:
        raise EgressBlockedError("The URL is not valid.")  # some clients decode it, others do not
    if host.isascii():
        return host
    try:
        return idna.uts46_remap(host, std3_rules=False).translate(_FULL_STOPS)
    except idna.IDNAError:
        raise EgressBlockedError("The URL is not valid.") from None


def _literal_address(host: str) -> Address | None:
    """The address that `host` spells, in any form that resolvers accept (`127.1`, `0x7f000001`)."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _embedded(address: Address) -> Address | None:
    """The embedded IPv4 address of an IPv6 address (mapped, NAT64, 6to4, Teredo, ISATAP), the real
    target."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return None if address.teredo is None else address.teredo[1]


def _is_public(address: Address) -> bool:
    if any(address in network for network in _UNROUTED):
        return False
    mapped = isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped is not None or address in _NAT64)
    return (address.is_global or mapped) and not address.is_multicast


def _is_host_name(text: str) -> bool:
    labels = text.rstrip(".").split(".")
    return len(text) <= 253 and all(
        label and len(label) <= 63 and label.replace("-", "").replace("_", "").isalnum() for label in labels
    )
