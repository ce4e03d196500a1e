"""The one guard on requests that leave for addresses users name: scheme, resolved address, private ranges.

Two halves that belong together: `check` looks at a URL before it is requested (an address written out needs no resolver),
`GuardedResolver` (egress_resolver.py) at what a name resolves to; a client connects to the vetted addresses themselves, so
that a name that resolves anew cannot slip past (DNS rebinding). Addresses that the operator configures (models, tracing) do
not pass here.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNROUTED = tuple(
    ipaddress.IPv6Network(network) for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "fec0::/10")
)
"""Not global, whatever the `ipaddress` of this Python says: IPv4-compatible and IPv4-translated addresses (RFC 4291, 2765),
NAT64 for use within a network (RFC 8215), site-local ones (RFC 3879)."""
_MAX_URL = 8_192
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class EgressBlockedError(OSError):
    """The request may not leave. `reason` is a sentence for whoever named the address, a model too; `advice` is the same with
    what a name resolved to and what an operator can do about it, for who configures addresses and for logs."""

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = f"{reason} {remedy}" if remedy else reason


class EgressPolicy:
    """What may be reached: every public address, and of the others what `allow` lists: networks (`10.1.0.0/16`),
    addresses, or host names (`mcp.internal`, which then may resolve to anything). Raises ValueError for entries that are
    none of these."""

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
        """Why a URL may not be requested and what helps, as far as that can be told without resolving its name; else None.
        For who configures addresses."""
        try:
            self.check(url)
        except EgressBlockedError as blocked:
            return blocked.advice
        return None

    def check(self, url: str) -> None:
        """Look at a URL that is about to be requested. Raises EgressBlockedError."""
        if len(url) > _MAX_URL:
            raise EgressBlockedError("The URL is too long.")
        if _CONTROL.search(url):
            # `urlsplit` leaves out tabs and line ends, so that what is looked at would not be what is requested.
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
        address = _literal_address(host)
        if address is not None:
            self.check_address(host, address)

    def check_address(self, host: str, address: Address) -> None:
        """Look at an address that `host` stands for. Raises EgressBlockedError."""
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


def _literal_address(host: str) -> Address | None:
    """The address that `host` writes out, in any spelling a resolver would take for one (`127.1`, `0x7f000001`)."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _embedded(address: Address) -> Address | None:
    """The IPv4 address that an IPv6 one carries (mapped, NAT64, 6to4, Teredo), which is what would be reached."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    return None if address.teredo is None else address.teredo[1]


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and any(address in network for network in _UNROUTED):
        return False
    mapped = isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped is not None or address in _NAT64)
    return (address.is_global or mapped) and not address.is_multicast


def _is_host_name(text: str) -> bool:
    labels = text.rstrip(".").split(".")
    return len(text) <= 253 and all(
        label and len(label) <= 63 and label.replace("-", "").replace("_", "").isalnum() for label in labels
    )
