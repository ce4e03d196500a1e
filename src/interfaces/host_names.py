"""Whether a Host header names this service. Otherwise a web page could reach the service under a
name under its control (DNS rebinding). Pure."""

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

_LOCAL_NAMES = frozenset({"localhost"})
FOREIGN_HOST = "The Host header does not name this service (DRAGOMAN_PUBLIC_URL sets its name)."


def names_this_service(host: str | None, public_url: str | None) -> bool:
    """Whether a host is an address, a name of this machine, or the name in the public URL."""
    public_host = None if public_url is None else host_of(public_url)
    return host is not None and (is_address(host) or host in _LOCAL_NAMES or host == public_host)


def is_loopback(host: str) -> bool:
    return host in _LOCAL_NAMES or (is_address(host) and ipaddress.ip_address(host).is_loopback)


@lru_cache(maxsize=256)
def host_of(url: str) -> str | None:
    """The host in a URL; of a Host header with `//` before it."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@lru_cache(maxsize=256)
def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
