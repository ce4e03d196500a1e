"""Selects the operator's proxy for a request: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, as curl and Go
interpret them."""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from infrastructure.http.egress import Network

_DEFAULT_PORTS = {"http": 80, "https": 443}


class _Exception(NamedTuple):
    """An entry of NO_PROXY: a network, or a domain with its subdomains (empty for all); `port` None
    for each port."""

    domain: str
    network: Network | None = None
    port: int | None = None


class Proxies:
    """Proxies by the scheme of the target.

    - `bypass` lists targets that are reached directly: `*`, a host name (with its subdomains), an
      address or a network, each with or without a port.
    - This machine (`localhost`, loopback addresses) is always reached directly: a proxy would reach
      its own.
    """

    def __init__(self, *, http: str | None = None, https: str | None = None, bypass: Iterable[str] = ()) -> None:
        self._by_scheme = {"http": http, "https": https}
        self._exceptions = tuple(map(_read, bypass))
        self.is_configured = http is not None or https is not None

    def of(self, scheme: str, host: str, port: int | None = None) -> str | None:
        """The URL of the proxy for a target, None for a direct connection."""
        proxy = self._by_scheme.get(scheme)
        if proxy is None or self._is_direct(host.lower().rstrip("."), port or _DEFAULT_PORTS[scheme]):
            return None
        return proxy

    def _is_direct(self, host: str, port: int) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            address = None
        if host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback):
            return True
        for domain, network, only_port in self._exceptions:
            if only_port is not None and only_port != port:
                continue
            if network is not None:
                if address is not None and address.version == network.version and address in network:
                    return True
            elif not domain or host == domain or host.endswith(f".{domain}"):
                return True
        return False


def _read(entry: str) -> _Exception:
    host, port = entry.strip().lower(), None
    if (network := _network(host)) is not None:
        return _Exception("", network)
    before, colon, after = host.rpartition(":")
    if colon and after.isdecimal():
        host, port = before, int(after)
    if (network := _network(host.strip("[]"))) is not None:
        return _Exception("", network, port)
    return _Exception(host.removeprefix("*").strip("."), None, port)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


DIRECT = Proxies()
